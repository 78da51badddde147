"""The data plane of one machine: values as bytes, objects as files, and the folders of a session.

`codec` turns values into bytes and back, `functions` does so for functions, `culprit` names the part that could not be
pickled. `mapping` maps files; `segments` writes them and reuses their memory. `files` keeps the objects of one node,
`session` makes and removes the folders, `limits` knows how much room there is. `outside` is for files that people and
commands made. The package knows nothing of nodes, tasks or the processes that run them.
"""
