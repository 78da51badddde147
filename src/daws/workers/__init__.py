"""Processes (or threads) that run tasks, and the pool that feeds them.

The owner (a node) has a `pool`. The pool starts a fork server (`server` here, `zygote` there), which forks one
process per slot (`worker`); each talks to the pool over a pair of sockets (`daws.wire`). `running`
calls the function of one order (`commands` has one that runs `programs`), `failures` makes its exceptions travel,
`roots` says which task is to blame, `output` reports what it prints and `logs` what it logs, `cursor` shows the pool
which run it is on, `surroundings` are its environment, `blas` the threads of its libraries. `nest`
is for runs that create tasks and wait for them. `limits` are watched by the pool. `threads` is the same pool without
processes (`sharedstreams` tells what these print), `port` what both have in common.
"""
