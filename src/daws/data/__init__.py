"""The data plane of one machine: values as bytes, objects as files, and the folders of a session.

`codec` turns values into bytes and back, `functions` does so for functions, `culprit` says what could not be turned.
`mapping` maps files, `segments` writes them and uses their memory again, `files`
keeps the objects of one node, `session` makes and removes the folders, `limits` knows how much room there is,
`outside` is for files that people and commands made. Knows nothing of nodes, tasks or the processes that run them.
"""
