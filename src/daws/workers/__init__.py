"""Processes (or threads) that run tasks, and the pool that feeds them.

The owner (a node) has a `pool`. The pool starts a fork server (`server` here, `zygote` there), which forks one process
per slot (`worker`); each talks to the pool over a pair of sockets (`daws.wire`). `link` is a worker as the pool sees
it.

    running        calls the function of one order
    commands       the function that runs `programs`, with `shell` for lines of text
    nest           runs that create tasks and wait for them
    failures       exceptions that travel
    roots          the task to blame for a failure
    output         the printed output of runs
    logs           the log records of runs
    cursor         the run that a worker is on, for the pool
    surroundings   the environment of a run
    blas           the threads of numerical libraries
    limits         limits of runs, which the pool enforces
    threads        the same pool without processes; `sharedstreams` catches their output
    port           the interface of both pools
"""
