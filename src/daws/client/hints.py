"""Names that people know from other libraries, and what to write here: tables, and the lines that are made of them.

Nothing here is imported before somebody has asked for something that is not there, but for the tables of attributes.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from daws.model.errors import UsageError

if TYPE_CHECKING:
    from daws.model.task import Needs

START = "daws.Cluster() starts workers here, daws.connect(folder) uses nodes that run already"
CALL = "call the task itself, its calls are futures: square(2); there are no actors"
ITERATE = "cluster.map(f, xs) gives the results in order, daws.as_completed(cluster.map(f, xs)) as they end"
OPTIONS = "cluster.options(retries=2, timeout=60).submit(f, x)"

NO_ACTORS = "there are no actors: pass the state from task to task, or set it up in each worker (setup=…)"
ARRAYS = "there are no arrays or data frames of daws: cut yours into parts, and cluster.map(f, parts)"
RECORD = "daws.Cluster(trace='run.json') shows in ui.perfetto.dev when and where tasks ran, plot='busy.png' draws it"
BATCH = "start 'daws node --cluster folder' on each machine, in jobs of your batch system; then daws.connect(folder)"
ALIVE = "cluster.nodes() lists the nodes, cluster.counters() what they have done"
SHARED = "on one machine, multiprocessing.Manager() of Python has queues, locks and dicts that tasks can share"

LEAKS = "leave it out, workers stay; a task that leaks can run in a command (cluster.run)"
FORMS = "list(cluster.map(f, xs)) has all results, for x in cluster.map(f, xs) takes them one by one"
PROXY = "with nodes on other machines: 'daws cluster init', 'daws node' and daws.connect(folder)"

PACKAGE = {
    "Client": START,
    "LocalCluster": START,
    "init": START,
    "Parallel": "with daws.Cluster(n_jobs=2) as cluster: results = list(cluster.map(f, xs))",
    "delayed": "@daws.task makes calls of a function tasks, daws.gather(calls) gives their results",
    "compute": "daws.gather(futures) gives the results",
    "persist": "calls of a @daws.task start at once, and their futures keep the results",
    "optimize": "calls of a @daws.task start at once: there is nothing to optimise; leave it out",
    "remote": f"@daws.task makes calls of a function tasks; {NO_ACTORS}",
    "get": "daws.gather(futures), or future.result()",
    "put": "cluster.put(value)",
    "scatter": "cluster.put(value)",
    "submit": "with daws.Cluster() as cluster: cluster.submit(f, x)",
    "map": "with daws.Cluster() as cluster: list(cluster.map(f, xs))",
    "run": "cluster.run(…) runs a program, cluster.submit(f, x) a function",
    "options": OPTIONS,
    "annotate": OPTIONS,
    "shutdown": "cluster.close(), or leave its with block",
    "cancel": "future.cancel(), or cluster.cancel(futures)",
    "kill": f"future.cancel() stops a task; {NO_ACTORS}",
    "Executor": "daws.futures.Executor()",
    "ProcessPoolExecutor": "daws.futures.Executor() has the interface of concurrent.futures",
    "ThreadPoolExecutor": "daws.futures.ThreadPoolExecutor is Python's own; daws.Cluster(kind='threads') copies data",
    "InterpreterPoolExecutor": "daws.futures.Executor() has the interface of concurrent.futures",
    "get_reusable_executor": "daws.futures.Executor(), which a program can keep as long as it likes",
    "Pool": "with daws.Cluster() as cluster: list(cluster.map(f, xs)); or daws.futures.Executor()",
    "ThreadPool": "daws.Cluster(kind='threads'), or daws.futures.ThreadPoolExecutor, which is Python's own",
    "Process": "with daws.Cluster() as cluster: cluster.submit(f, x)",
    "Manager": SHARED,
    "Memory": "daws.Cluster(memo='folder'), and cluster.options(memo=True).submit(f, x)",
    "cache": "daws.Cluster(memo='folder'), and @daws.task(memo=True)",
    "dump": "there is none: pickle.dump, numpy.save or joblib.dump of what future.result() gives",
    "load": "there is none: pickle.load, numpy.load or joblib.load",
    "hash": "there is none: hashlib or joblib.hash; cluster.options(memo=True) reuses results by content",
    "cpu_count": "os.cpu_count(); cluster.workers is the number of workers",
    "effective_n_jobs": "cluster.workers",
    "parallel_config": "with daws.Cluster(workers=4, kind='threads') as cluster: …",
    "parallel_backend": "with daws.Cluster(workers=4, kind='threads') as cluster: …",
    "register_parallel_backend": "use a daws.Cluster itself: list(cluster.map(f, xs))",
    "wrap_non_picklable_objects": "leave it out: lambdas, closures and classes of scripts travel by value",
    "config": "give options to daws.Cluster(…), and to tasks by cluster.options(…)",
    "get_client": "daws.current() inside of a task",
    "worker_client": "client = daws.current() inside of a task, without a with block",
    "default_client": "keep the cluster in a name, or call @daws.task functions inside its with block",
    "secede": "leave it out: a task that waits for its own tasks gives its worker to others",
    "rejoin": "leave it out: a task that waits for its own tasks gives its worker to others",
    "get_worker": "daws.current() inside of a task; setup=… of daws.Cluster prepares workers",
    "get_runtime_context": "daws.current() inside of a task",
    "get_gpu_ids": "os.environ['CUDA_VISIBLE_DEVICES'] in tasks with options(context='gpu')",
    "fire_and_forget": "cluster.submit(f, x): closing the cluster waits for all tasks",
    "futures_of": "keep the futures that submit and calls of a @daws.task give",
    "is_dask_collection": "isinstance(x, daws.Future)",
    "Delayed": "daws.Future is what calls of a @daws.task give",
    "ObjectRef": "daws.Future",
    "AsyncResult": "daws.Future",
    "visualize": RECORD,
    "performance_report": RECORD,
    "get_task_stream": RECORD,
    "timeline": RECORD,
    "ProgressBar": "daws.progress(futures), or daws.gather(futures, progress=True)",
    "tqdm": "daws.progress(futures), or daws.gather(futures, progress=True)",
    "is_initialized": "keep the cluster in a name: cluster = daws.Cluster()",
    "nodes": "cluster.nodes()",
    "cluster_resources": "cluster.nodes(), cluster.workers",
    "available_resources": "cluster.nodes(), cluster.workers",
    "print": "leave it out: what tasks print appears here",
    "warn": "leave it out: warnings.warn in tasks is a warning here",
    "ALL_COMPLETED": "daws.wait(futures, return_when='all')",
    "FIRST_COMPLETED": "daws.wait(futures, return_when='first')",
    "FIRST_EXCEPTION": "daws.wait(futures, return_when='error')",
    "CancelledError": "daws.TaskCancelledError",
    "TimeoutError": "Python's own TimeoutError; a task over its time limit raises daws.TaskTimeoutError",
    "KilledWorker": "daws.TaskKilledError",
    "BrokenProcessPool": "daws.TaskKilledError",
    "BrokenExecutor": "daws.TaskKilledError, daws.WorkerStartError, daws.ClosedError",
    "InvalidStateError": "futures of daws end with their tasks; concurrent.futures.InvalidStateError is Python's own",
    "exceptions": "errors are names of daws itself: daws.DawsError, daws.TaskKilledError; tasks raise what they raise",
    "errors": "errors are names of daws itself: daws.DawsError, daws.TaskKilledError; tasks raise what they raise",
    "Reschedule": "cluster.options(retries=2): a task that raises is tried again",
    "python_app": "@daws.task",
    "bash_app": "daws.command(line), and cluster.run(…)",
    **dict.fromkeys(["Actor", "actor", "ActorFuture", "ActorPool", "method", "get_actor"], NO_ACTORS),
    "Queue": f"daws.as_completed(futures) gives results as they end; {SHARED}",
    "Lock": f"tasks share nothing that needs a lock, but files; {SHARED}",
    "Event": f"a task that waits for others takes their futures as arguments; {SHARED}",
    "Semaphore": "tasks with a context run at most as many at once as daws.Cluster(devices={'licence': 2}) has",
    "Variable": "cluster.put(value), or the future of a task",
    "Pub": f"daws.as_completed(futures) gives results as they end; {SHARED}",
    "Sub": f"daws.as_completed(futures) gives results as they end; {SHARED}",
    **dict.fromkeys(["WorkerPlugin", "SchedulerPlugin", "NannyPlugin"], "daws.Cluster(setup=f, teardown=g)"),
    **dict.fromkeys(["SSHCluster", "SLURMCluster", "PBSCluster", "LSFCluster", "SGECluster", "KubeCluster"], BATCH),
    "Security": "'daws cluster init' makes the keys of a cluster, and daws.connect(folder) uses them",
    "Scheduler": START,
    "Worker": START,
    "Nanny": START,
}
MODULES = {
    "distributed": f"import daws: {START}",
    "joblib": "import daws: with daws.Cluster(n_jobs=2) as cluster: results = list(cluster.map(f, xs))",
    "multiprocessing": "import daws: with daws.Cluster(processes=4) as pool: results = list(pool.map(f, xs))",
    "pool": "import daws: with daws.Cluster(processes=4) as pool: results = list(pool.map(f, xs))",
    "concurrent": "from daws.futures import ProcessPoolExecutor, as_completed, wait",
    "diagnostics": "import daws: daws.progress(futures), daws.Cluster(trace='run.json')",
    "array": ARRAYS,
    "bag": ARRAYS,
    "dataframe": ARRAYS,
}
"""Modules of other libraries that people look for in this package: each has a file in `_others`."""
CLUSTER = {
    "call": f"cluster.call is gone: {OPTIONS}",
    "scatter": "cluster.put(value) hands in an object once for many tasks",
    "compute": "cluster.gather(futures) gives the results",
    "persist": "cluster.submit starts at once and keeps the result as long as its future is kept",
    "apply": "cluster.submit(f, *args).result()",
    "apply_async": "cluster.submit(f, *args, **kwargs) gives a future, and future.add_done_callback(function)",
    "map_async": "cluster.map(f, xs) does not wait until a result is asked for",
    "imap": ITERATE,
    "imap_unordered": ITERATE,
    "starmap": "cluster.map(f, *zip(*pairs)) calls f with one item of each",
    "starmap_async": "cluster.map(f, *zip(*pairs)) calls f with one item of each",
    "shutdown": "cluster.close() waits for all tasks, cluster.close(cancel=True) cancels them",
    "terminate": "cluster.close(cancel=True)",
    "join": "cluster.close() waits for all tasks",
    "scale": "give the number of workers to daws.Cluster(workers=…); with daws.connect, start more nodes ('daws node')",
    "adapt": "give the number of workers to daws.Cluster(workers=…); with daws.connect, start more nodes ('daws node')",
    "restart": "cluster.close(cancel=True), and make a new one",
    "who_has": "future.explain() says where a task ran, with daws.Cluster(explain=True)",
    "has_what": "cluster.nodes() lists the nodes, cluster.counters() what they have done",
    "as_completed": "daws.as_completed(futures)",
    "wait": "daws.wait(futures)",
    "progress": "daws.progress(futures)",
    "result": "future.result(), or cluster.gather(futures)",
    "get": "cluster.gather(futures), or future.result()",
    "remote": f"cluster.submit(f, x), or {OPTIONS}",
    "wait_for_workers": "a cluster has its workers when it is made; 'daws nodes' lists those of daws.connect",
    "ncores": "cluster.workers",
    "max_workers": "cluster.workers",
    "n_workers": "cluster.workers",
    "dashboard_link": "daws.progress(futures) shows a bar, daws.Cluster(trace='run.json') writes where tasks ran",
    "upload_file": "your own modules are sent along by themselves",
    "delayed": "cluster.submit(f, x), or @daws.task for functions whose calls are tasks",
    "retry": "cluster.options(retries=2).submit(f, x)",
    "get_executor": "daws.futures.Executor(cluster=cluster)",
    "get_client": "a cluster is its own client: cluster.submit(f, x)",
    "client": "a cluster is its own client: cluster.submit(f, x)",
    "cluster": "a cluster is its own client: cluster.submit(f, x)",
    "scheduler": f"there is no central scheduler; {ALIVE}",
    "scheduler_address": "daws.connect(folder) uses nodes that others started, by the folder of the cluster",
    "scheduler_info": ALIVE,
    "processing": ALIVE,
    "get_versions": ALIVE,
    "status": "repr(cluster) says whether it is open, and how many tasks have not ended",
    "nthreads": "cluster.workers",
    "call_stack": "future.running() says whether a task runs; 'py-spy dump' shows where a process is",
    "profile": RECORD,
    "get_task_stream": RECORD,
    "get_worker_logs": "what tasks print and log appears here while they run",
    "get_scheduler_logs": "'daws node' logs to its own standard error",
    "get_logs": "what tasks print and log appears here while they run",
    "log_event": "use logging in tasks: it appears here",
    "get_events": "use logging in tasks: it appears here",
    "publish_dataset": "daws.connect(folder, session='name', keep=True) keeps futures for other clients",
    "get_dataset": "daws.connect(folder, session='name').futures() are those of that session",
    "list_datasets": "cluster.sessions() lists the sessions of daws.connect",
    "datasets": "cluster.sessions() lists the sessions of daws.connect",
    "unpublish_dataset": "cluster.end(session) forgets a session of daws.connect",
    "rebalance": "leave it out: tasks go to where their data is, and nodes fetch what they need",
    "replicate": "leave it out: tasks go to where their data is, and nodes fetch what they need",
    "run_on_scheduler": "cluster.submit(f, x) runs a function in a worker",
    "register_plugin": "daws.Cluster(setup=f, teardown=g)",
    "register_worker_plugin": "daws.Cluster(setup=f, teardown=g)",
    "register_worker_callbacks": "daws.Cluster(setup=f)",
    "sync": "cluster.submit(f, x).result(); async def functions are tasks, too",
    "retire_workers": "cluster.drain(node), with daws.connect",
    "restart_workers": "a worker that dies is replaced; leave it out",
    "start": "a cluster has its workers when it is made; leave it out",
    "clear": "remove the folder that daws.Cluster(memo='folder') names, or give another version=",
    "cache": "daws.Cluster(memo='folder'), and cluster.options(memo=True).submit(f, x)",
    "id": "repr(cluster) says what it is",
    "amm": "leave it out: objects that no task needs any more are deleted",
    "loop": "leave it out: 'await future', 'async with' and 'async for' work with every cluster",
    "asynchronous": "leave it out: 'await future', 'async with' and 'async for' work with every cluster",
    "futures": "keep the futures that submit gives; daws.connect(folder, session='name').futures() finds them again",
    "terminate_workers": "cluster.close(cancel=True)",
    "kill_workers": "cluster.close(cancel=True)",
}
FUTURE = {
    "get": "future.result()",
    "wait": "future.exception() waits and gives what was raised, or None; daws.wait([future], timeout=…)",
    "ready": "future.done()",
    "successful": "future.done() and future.exception() is None",
    "add_callback": "future.add_done_callback(function)",
    "status": "future.state",
    "key": "future.task is the number of its task",
    "release": "drop the future: its result goes with it",
    "set_result": "a future ends with its task, and nobody else can set its result",
    "set_exception": "a future ends with its task, and nobody else can set its exception",
    "compute": "future.result()",
    "_condition": "use daws.wait or daws.as_completed; daws.futures.Executor gives futures of Python itself",
    "then": "cluster.submit(f, future) runs f with its result",
    "value": "future.result()",
    "traceback": "future.exception().__traceback__; raising what future.exception() gives prints it",
    "retry": "cluster.options(retries=2).submit(f, x)",
    "set_running_or_notify_cancel": "futures of daws are run by daws; concurrent.futures.Future() is Python's own",
    "visualize": RECORD,
    "persist": "leave it out: a task starts at once, and its future keeps the result",
    "client": "keep the cluster in a name; inside of a task, daws.current()",
    "type": "type(future.result())",
    "hex": "future.task is the number of its task",
    "task_id": "future.task is the number of its task",
}
MAPPED = {
    "result": "list(mapped), or mapped[3] for one item",
    "results": "list(mapped)",
    "get": "list(mapped), or mapped[3] for one item",
    "add_done_callback": "daws.as_completed(mapped) gives the items in the order in which they end",
    "gather": "list(mapped), or daws.gather(mapped, timeout=60)",
    "wait": "daws.wait(mapped, timeout=60)",
    "compute": "list(mapped)",
    "exception": "daws.gather(mapped, errors='return') has exceptions in the place of results",
    "append": "results = list(mapped)",
    "sort": "sorted(mapped)",
    "ready": "mapped.done()",
    "successful": "all(one.exception() is None for one in daws.as_completed(mapped))",
    "next": "results = iter(mapped), next(results)",
    "tolist": "list(mapped)",
    "as_completed": "daws.as_completed(mapped)",
}
COMPLETED = {
    "returncode": "completed.code",
    "exit_code": "completed.code",
    "output": "completed.text, or completed.stdout for bytes",
    "args": "completed.command",
    "check_returncode": "an exit code other than 0 raises CommandError already, unless check=False",
}
TASK = {
    "remote": CALL,
    "delay": CALL,
    "submit": CALL,
    "apply_async": CALL,
    "bind": CALL,
    "map": "cluster.map(square, items)",
    "compute": "call the task, and ask the future for its result(): square(2).result()",
    "visualize": RECORD,
    "result": "call the task first: square(2).result()",
    "starmap": "cluster.map(square, *zip(*pairs))",
    "clear": "remove the folder that daws.Cluster(memo='folder') names, or give another version=",
    "cache": "@daws.task(memo=True), and daws.Cluster(memo='folder')",
}

WORKERS = ("n_workers", "max_workers", "n_jobs", "num_workers", "nworkers", "num_cpus", "ncpus", "processes", "nprocs")
"""What others call the number of workers."""
KINDS = ("processes", "process", "threads", "thread", "use_threads", "threading", "multiprocessing")
"""What others call `kind`, as True or False."""
CHANGES_NOTHING: dict[str, tuple[Any, ...]] = {
    "threads_per_worker": (1, None),
    "processes": (True,),
    "backend": ("loky", "multiprocessing", "processes", None),
    "prefer": ("processes", None),
    "require": (None,),
    "verbose": (False, None),
    "asynchronous": (False,),
    "dashboard_address": (None,),
    "include_dashboard": (False, None),
    "silence_logs": (True, False, None, 10, 20, 30, 40, 50),
    "memory_limit": ("auto", None),
    "set_as_default": (True,),
    "ignore_reinit_error": (True, False),
    "log_to_driver": (True,),
    "return_as": ("list",),
    "address": (None,),
}
"""Options of clusters elsewhere, with the values that ask for what is so anyway. (1 is True, and 0 is False.)"""
CLUSTER_OPTIONS = {
    "threads_per_worker": "a worker runs one task at a time; a task that uses threads says so: options(cores=4)",
    "memory_limit": "memory_bytes='4 GB' is how much memory all objects may take before they are spilled to disk",
    "object_store_memory": "memory_bytes='4 GB'",
    "gpus": "devices={'gpu': 2}, and options(context='gpu') for tasks that need one",
    "num_gpus": "devices={'gpu': 2}, and options(context='gpu') for tasks that need one",
    "address": "daws.connect(folder) uses nodes that run already",
    "initializer": "setup=… is called in each worker first",
    "initargs": "setup=functools.partial(function, *args)",
    "backend": "kind='processes' or kind='threads'",
    "prefer": "kind='processes' or kind='threads'",
    "mp_context": "workers are forked from a small server process of daws; leave it out",
    **dict.fromkeys(["maxtasksperchild", "max_tasks_per_child"], LEAKS),
    "dashboard_address": "there is no dashboard: trace='run.json' writes when and where tasks ran",
    "verbose": "daws.progress(futures) shows a bar",
    "local_directory": "set TMPDIR",
    "timeout": OPTIONS,
    "retries": OPTIONS,
    "scheduler_file": "daws.connect(folder) uses nodes that run already",
    "cluster": "a cluster is its own client: cluster.submit(f, x)",
    "asynchronous": "leave it out: 'await future', 'async with' and 'async for' work with every cluster",
    "require": "tasks cannot change what this program has: return results; or concurrent.futures.ThreadPoolExecutor",
    "return_as": f"leave it out: {FORMS}; daws.as_completed(cluster.map(f, xs)) as they end",
    "pre_dispatch": "leave it out: all items are submitted at once, and large ones are shared or go to files",
    "batch_size": "cluster.map(f, xs, chunk=10)",
    "chunksize": "cluster.map(f, xs, chunk=10)",
    "chunk": "cluster.map(f, xs, chunk=10)",
    "max_nbytes": "leave it out: what is larger than 256 kB is shared by all tasks",
    "mmap_mode": "leave it out: large arrays are shared, read-only; options(writable=True) gives copies",
    "temp_folder": "set TMPDIR",
    "inner_max_num_threads": "options(cores=2): the threads of numerical libraries follow a task's cores",
    "runtime_env": "workers have the environment of this program; setup=… prepares them",
    "env": "workers have the environment of this program: set os.environ before",
    "include_dashboard": "there is no dashboard: trace='run.json' writes when and where tasks ran",
    "host": PROXY,
    "scheduler_port": PROXY,
    "ip": PROXY,
    "port": PROXY,
    "protocol": PROXY,
    "security": PROXY,
    "interface": PROXY,
    "namespace": "leave it out; daws.connect(folder, session='name') has sessions with names",
    "name": "leave it out; daws.connect(folder, session='name') has sessions with names",
    "resources": "devices={'gpu': 2}, and options(context='gpu') for tasks that need one",
    "worker_class": "leave it out; kind='processes' or kind='threads'",
    "nanny": "leave it out: a worker that dies is replaced",
    "preload": "setup=… is called in each worker first",
    "preload_nanny": "setup=… is called in each worker first",
    "heartbeat_interval": "leave it out",
    "direct_to_workers": "leave it out",
    "silence_logs": "leave it out",
    "set_as_default": "leave it out: calls of @daws.task functions run on the cluster of the with block they are in",
    "ignore_reinit_error": "leave it out: a program may have several clusters",
    "logging_level": "logging in tasks follows the levels of your own loggers",
    "log_to_driver": "leave it out: what tasks print and log appears here",
    "context": "options(context='gpu') is for tasks; kind='processes' or kind='threads' for workers",
}
MAP_OPTIONS = {
    "batch_size": "chunk=…",
    "chunk_size": "chunk=…",
    "timeout": "daws.gather(cluster.map(…), timeout=60), or cluster.options(timeout=60).map(…) for each task",
    "callback": "for future in daws.as_completed(cluster.map(…)): …",
    "memo": "cluster.options(memo=True).map(…)",
    "buffersize": "map reads all items at once; give it parts (itertools.batched or islice)",
    "return_as": f"leave it out: {FORMS}; daws.as_completed(cluster.map(f, xs)) as they end",
    "n_jobs": "daws.Cluster(n_jobs=4)",
    "verbose": "daws.gather(cluster.map(…), progress=True)",
    "progress": "daws.gather(cluster.map(…), progress=True)",
}
RUN_OPTIONS = {
    "shell": "a text is a shell line already; a list of words runs without a shell",
    "capture_output": "the output is kept: result().stdout has its bytes, result().text its text",
    "text": "result().text is the output as text",
    "universal_newlines": "result().text is the output as text",
    "encoding": "result().stdout.decode(…)",
    "errors": "result().stdout.decode(errors=…)",
    "input": "stdin='…' is text or bytes for the program",
    "args": "give the program and its arguments as one list",
    "executable": "give the program as the first word of the list",
    "directory": "cwd='…'",
    "workdir": "cwd='…'",
    "quiet": "show=False",
    "verbose": "show=True",
}
SUBMITTER = dict.fromkeys(
    ["cancel", "close", "gather", "nodes", "put", "result", "workers"],
    "options(…) goes before submit, map and run; all else is asked of the cluster itself: cluster.gather(futures)",
)
EXECUTOR = {
    "options": "executor = daws.futures.Executor(cluster=cluster), and cluster.options(retries=2).submit(f, x)",
    "close": "executor.shutdown()",
    "gather": "[future.result() for future in futures]",
    "put": "executor = daws.futures.Executor(cluster=cluster), and cluster.put(value)",
    "starmap": "executor.map(f, *zip(*pairs))",
    "imap": "executor.map(f, xs)",
    "apply_async": "executor.submit(f, *args, **kwargs)",
}
WAIT_OPTIONS = {
    "num_returns": "daws.wait(futures, return_when='first'), or daws.as_completed(futures)",
    "fetch_local": "leave it out: results are fetched when they are asked for",
    "with_results": "for future in daws.as_completed(futures): future.result()",
    "raise_errors": "leave it out: future.result() raises what its task raised, future.exception() gives it",
    "loop": "leave it out: async for future in daws.as_completed(futures)",
    "notebook": "leave it out: a bar is shown on terminals and in notebooks",
    "multi": "leave it out",
    "complete": "leave it out",
    "group_by": "leave it out: the bar counts all tasks",
    "interval": "leave it out",
}
PUT_OPTIONS = {
    "broadcast": "leave it out: nodes fetch what their tasks read",
    "workers": "leave it out: nodes fetch what their tasks read",
    "direct": "leave it out",
    "hash": "leave it out",
    "data": "cluster.put(value)",
}
CANCEL_OPTIONS = {
    "force": "leave it out: what runs is stopped, too",
    "recursive": "leave it out: tasks that need a cancelled one are cancelled, too",
    "asynchronous": "leave it out",
    "reason": "leave it out",
    "msg": "leave it out",
}
ARRIVING = {
    "add": "keep a set of pending futures: done, pending = daws.wait(pending, return_when='first')",
    "update": "keep a set of pending futures: done, pending = daws.wait(pending, return_when='first')",
    "batches": "done, pending = daws.wait(pending, return_when='first') gives all that have ended by now",
    "next_batch": "done, pending = daws.wait(pending, return_when='first') gives all that have ended by now",
    "count": "sum(not future.done() for future in futures)",
    "is_empty": "all(future.done() for future in futures)",
    "has_ready": "any(future.done() for future in futures)",
    "clear": "leave the loop: for future in daws.as_completed(futures): …; break",
    "result": "for future in daws.as_completed(futures): future.result()",
}
"""Names of what `as_completed` gives elsewhere."""
GATHER_OPTIONS = {
    "return_exceptions": "errors='return'",
    "on_error": "errors='return', or errors='skip'",
    "return_when": "daws.wait(futures, return_when='first')",
    "direct": "leave it out",
    "asynchronous": "leave it out; in asynchronous code: await asyncio.gather(*futures)",
    "return_as": "leave it out; daws.as_completed(futures) gives futures as they end",
}
CLOSE_OPTIONS = {
    "wait": "close() waits for all tasks, close(cancel=True) cancels them",
    "cancel_futures": "close(cancel=True)",
    "force": "close(cancel=True)",
    "timeout": "daws.wait(futures, timeout=60) first, then close(cancel=True)",
}
LEFT_OUT = {
    "key": "leave it out",
    "name": "leave it out",
    "dask_key_name": "leave it out",
    "traverse": "leave it out: futures are found anywhere inside the arguments",
    "workers": "leave it out: tasks go to where their data is; context='gpu' is for tasks that need a device",
    "allow_other_workers": "leave it out: tasks go to where their data is",
    "fifo_timeout": "leave it out",
    "scheduling_strategy": "leave it out: tasks go to where their data is",
    "runtime_env": "leave it out; setup=… of daws.Cluster prepares workers",
    "actor": NO_ACTORS,
    "actors": NO_ACTORS,
    "args": "give arguments one by one: cluster.submit(f, *args, **kwargs)",
    "kwds": "give arguments one by one: cluster.submit(f, *args, **kwargs)",
    "callback": "future.add_done_callback(function)",
    "error_callback": "future.add_done_callback(function), and future.exception() there",
}
"""Options of tasks elsewhere that there is nothing for here."""
OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
GPUS = ("gpus", "gpu", "num_gpus", "n_gpus")
"""What others call a task's need of a device."""
TASK_OPTIONS = {
    "max_retries": "retries",
    "retry": "retries",
    "num_retries": "retries",
    "retry_exceptions": "retries",
    "num_cpus": "cores",
    "cpus": "cores",
    "threads": "cores",
    "ncores": "cores",
    "n_cores": "cores",
    "num_returns": "outputs",
    "nout": "outputs",
    **dict.fromkeys(GPUS, "context"),
    "resources": "context",
    "labels": "context",
    "mem": "memory",
    "memory_bytes": "memory",
    "memory_limit": "memory",
    "time_limit": "timeout",
    "walltime": "timeout",
    "cache": "memo",
    "pure": "memo",
    "memoize": "memo",
    "estimate": "expected",
    **dict.fromkeys(LEFT_OUT, ""),
}
"""Names of options elsewhere, and which one is closest here ("" for none)."""


class Hint:
    """In the place of an attribute that others have: whoever asks for it is told what to write instead."""

    def __init__(self, cure: str) -> None:
        self._cure = cure

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name
        self._owner = owner.__name__

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(f"{self._owner} has no {self._name!r}: {self._cure}")


def answer_to(owner: type, table: Mapping[str, str]) -> None:
    """Have a class answer to names of others. Costs nothing for the names that it has."""
    for name, cure in table.items():
        assert name not in owner.__dict__, name
        hint = Hint(cure)
        hint.__set_name__(owner, name)
        setattr(owner, name, hint)
    if "__dir__" not in owner.__dict__:
        setattr(owner, "__dir__", names_of)  # noqa: B010 (mypy knows no better)


def names_of(instance: object) -> list[str]:
    """What `dir` lists: without the names that are only answered."""
    kind = type(instance)
    hinted = {name for one in kind.__mro__ for name, value in vars(one).items() if isinstance(value, Hint)}
    return sorted(set(object.__dir__(instance)) - hinted)


def refuse_as_value(owner: type) -> None:
    """Have futures say what they are where people compute with them as if they were results. `bool` stays as it is."""
    for name in (
        "__getitem__",
        *[f"__{what}__" for what in ("lt", "le", "gt", "ge", "neg", "abs", "float", "int", "index", "len")],
        *[f"__{side}{what}__" for what in OPERATORS for side in ("", "r")],
    ):
        setattr(owner, name, _no_value)
    setattr(owner, "__bool__", _is_there)  # noqa: B010 (or else `len` would be asked)


def _no_value(self: object, *others: object, **more: object) -> NoReturn:
    raise TypeError(f"{self!r} is a future: ask for its result(), or pass it to another task")


def _is_there(self: object) -> bool:
    return True


def refuse_as_list(owner: type) -> None:
    """Have what `map` gives say how to get a list where people compute with it as if it were one."""
    for name in [*[f"__{side}{what}__" for what in OPERATORS for side in ("", "r")], "__setitem__"]:
        setattr(owner, name, _no_list)


def _no_list(self: object, *others: object) -> NoReturn:
    raise TypeError(f"{self!r} is no list: results = list(mapped)")


def note_cure(error: BaseException) -> str:
    """Put a note on an error that people make who know futures from elsewhere: the cure; "" if it is another error.

    For errors that cannot be answered where they are raised: results are objects of any kind, and `__getattr__` would
    make all that is asked of a future slower.
    """
    if not isinstance(error, (AttributeError, TypeError)) or getattr(error, "__notes__", None):
        return ""  # those of tasks have notes
    asked, whom, cure = getattr(error, "name", None), getattr(error, "obj", None), ""
    if "can't be used in 'await' expression" in str(error):
        cure = "gather, wait and close wait by themselves: leave out await; asyncio.gather(*futures) can be awaited"
    elif asked in ("result", "exception", "done", "status", "add_done_callback") and not hasattr(type(whom), "cancel"):
        cure = f"what map gives are results, not futures: leave out .{asked}, or [cluster.submit(f, x) for x in xs]"
    elif hasattr(type(whom), "_is_inner") and not any(
        isinstance(vars(one).get(str(asked)), Hint) for one in type(whom).__mro__
    ):
        cure = f"a future is not yet its result: future.result().{asked}; {NO_ACTORS}"
    if cure:
        error.add_note(cure)
    return cure


def closest(name: str, known: Iterable[str], at_least: float = 0.6) -> str:
    """Of the names that there are, the one that was meant, perhaps; "" if none is near."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), 1, at_least)), "")


def workers_of(given: Mapping[str, Any], workers: int | None, known: Iterable[str]) -> int | None:
    """The number of workers, under whichever of its names; UsageError for what is no option of a cluster."""
    for name, value in given.items():
        if _is_so_anyway(name, value):
            continue
        if name in KINDS and (name not in WORKERS or isinstance(value, bool)):
            raise UsageError(f"daws.Cluster has no option {name!r}: {_kind_of(name, value)}")
        if name not in WORKERS or isinstance(value, bool):
            number = dict.fromkeys(WORKERS, "workers=4 is the number of workers")
            _refuse("daws.Cluster", name, {**number, **CLUSTER_OPTIONS}, known)
        if workers is not None:
            raise UsageError(f"{name}={value!r}: the number of workers is given twice, also by workers={workers!r}")
        workers = _but_for(value) if isinstance(value, int) and value < 0 else value
    return workers


def _is_so_anyway(name: str, value: Any) -> bool:
    if name == "processes" and not isinstance(value, bool):
        return False  # the number of workers
    return isinstance(value, (bool, int, str, type(None))) and value in CHANGES_NOTHING.get(name, ())


def _but_for(number: int) -> int:
    """As joblib has it: -1 for as many workers as there are processors, -2 for one less."""
    from daws.client.defaults import default_workers

    return max(1, default_workers(1) + 1 + number)


def check_workers(workers: object, more: tuple[Any, ...] = ()) -> None:
    """Refuse what others have as the first arguments of a client, a pool or an executor."""
    if isinstance(workers, str):
        raise UsageError(
            f"daws.Cluster({workers!r:.100}): {CLUSTER_OPTIONS['address']}; daws.Cluster(workers=4) is here"
        )
    if hasattr(workers, "submit"):
        raise UsageError(f"daws.Cluster({workers!r:.100}): {CLUSTER_OPTIONS['cluster']}")
    if more:
        cure = "setup=…, called in each worker first" if callable(more[0]) else "daws.Cluster(4, kind='threads')"
        raise UsageError(f"daws.Cluster takes the number of workers; all else by name: {cure}")


def _kind_of(name: str, value: Any) -> str:
    """What to write in the place of `processes=False` and the like."""
    is_threads = ("thread" in name) == bool(value)
    kind = "kind='threads'" if is_threads else "kind='processes' (which is so if you say nothing)"
    return kind if isinstance(value, bool) or not is_threads else f"workers={value!r:.40}, {kind}"


def chunk_of(given: Mapping[str, Any], chunk: int | None, options: Iterable[str]) -> int | None:
    """The number of items per task, under either of its names; UsageError for what is no option of `map`."""
    for name, value in given.items():
        if name in MAP_OPTIONS or name == "chunksize":
            pass
        elif name in LEFT_OUT:
            raise UsageError(f"map has no option {name!r}: {LEFT_OUT[name]}")
        elif name in options or name in TASK_OPTIONS:
            raise UsageError(f"map: {name}= is an option of tasks: cluster.options({_said(name, value)}).map(…)")
        elif not closest(name, [*MAP_OPTIONS, "chunk", "chunksize"]):
            raise UsageError(f"map: {name}= is no option; to give it to the function: functools.partial(f, {name}=…)")
        if name != "chunksize":
            _refuse("map", name, MAP_OPTIONS, ["chunk", "chunksize"])
        if chunk is not None:
            raise UsageError("map: chunk= and chunksize= are the same; give one of them")
        chunk = value
    return chunk


def refuse_option(name: str, known: Iterable[str]) -> NoReturn:
    """There is no such option of tasks."""
    if name in GPUS:
        raise UsageError(
            f"there is no option {name!r} of tasks; context='gpu', and daws.Cluster(devices={{'gpu': 1}}) has one"
        )
    cure = TASK_OPTIONS.get(name, "") or (closest(name, known) if name not in LEFT_OUT else "")
    meant = f"did you mean {cure}=?" if cure else LEFT_OUT.get(name, "") or f"there are {', '.join(known)}"
    raise UsageError(f"there is no option {name!r} of tasks; {meant}")


def cure_of_needs(needs: "Needs", most: int) -> str:
    """What to write when no worker of a `daws.Cluster` can run a task with these needs; `most` is for cores."""
    from daws.model.context import Label

    if needs.context is None:
        return f"ask for at most {most}, or make daws.Cluster(workers={needs.cores})"
    if isinstance(needs.context, Label):
        return f"daws.Cluster(devices={{{needs.context.name!r}: 1}}) has one"
    return "daws.Cluster(devices={…}) gives workers a context"


def check_arguments(function: Any, kwargs: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse options of tasks among the arguments of a function that has no such parameter."""
    import inspect  # dear, and nearly nobody comes here

    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return  # nobody knows
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return
    wrong = [name for name in kwargs if name not in parameters and (name in known or name in TASK_OPTIONS)]
    if wrong:
        name = getattr(function, "__name__", repr(function))
        named = ", ".join([_said(one, kwargs[one]) for one in wrong if TASK_OPTIONS.get(one, one)])
        if not named:
            cure = LEFT_OUT[wrong[0]]
            raise UsageError(f"{name}() takes no argument {wrong[0]!r}, and tasks have no such option: {cure}")
        raise UsageError(f"{name}() takes no argument {wrong[0]!r}; as an option: cluster.options({named}).submit(…)")


def refuse_executor_option(name: str) -> NoReturn:
    """There is no such option of `daws.futures.Executor`."""
    known = ("max_workers", "initializer", "initargs", "cluster")
    cures = {**CLUSTER_OPTIONS, **dict.fromkeys(WORKERS, "max_workers=…")}
    cures.pop("initializer"), cures.pop("initargs")
    _refuse("daws.futures.Executor", name, cures, known)


def refuse_run_option(name: str, known: Iterable[str]) -> NoReturn:
    """There is no such option of commands."""
    known = list(dict.fromkeys(known))
    others = {one: f"did you mean {meant}=?" for one, meant in TASK_OPTIONS.items() if meant in known}
    _refuse("run", name, {**others, **RUN_OPTIONS}, known)


def refuse_gathering(more: tuple[Any, ...], others: Mapping[str, Any]) -> NoReturn:
    """`gather` was given several futures, or an option that it does not have."""
    if others:
        _refuse("gather", next(iter(others)), GATHER_OPTIONS, ("errors", "timeout", "progress"))
    raise UsageError("gather: give one list of futures: gather([a, b])")


def check_value(what: Any, whose: str) -> None:
    """Refuse what looks like a future, and would be given back as if it were a result."""
    if getattr(type(what), "_is_task", False):
        raise UsageError(f"{whose}: {what!r} is a task; call it, and give its calls: {whose}([square(2)])")
    if hasattr(type(what), "set_running_or_notify_cancel"):
        raise UsageError(
            f"{whose}: {what!r:.100} is a future of concurrent.futures: daws.futures.wait and as_completed take it, "
            "and [future.result() for future in futures]"
        )


def refuse_waiting(whose: str, more: tuple[Any, ...], others: Mapping[str, Any], known: Iterable[str]) -> NoReturn:
    """`wait`, `as_completed` or `progress` was given several futures, or an option that it does not have."""
    if others:
        _refuse(whose, next(iter(others)), WAIT_OPTIONS, known)
    raise UsageError(f"{whose}: give one list of futures: {whose}([a, b])")


def refuse_put_option(name: str) -> NoReturn:
    """There is no such option of `put`."""
    _refuse("put", name, PUT_OPTIONS, ())


def refuse_cancel_option(name: str) -> NoReturn:
    """There is no such option of `cancel`."""
    _refuse("cancel", name, CANCEL_OPTIONS, ())


def refuse_close_option(name: str) -> NoReturn:
    """There is no such option of `close`."""
    _refuse("close", name, CLOSE_OPTIONS, ("cancel",))


def check_callable(function: Any) -> None:
    """Refuse what a function has returned in the place of the function."""
    if not callable(function):
        raise UsageError(
            f"the function: {function!r:.100} cannot be called; give the function and its arguments apart: "
            "submit(f, x), not submit(f(x))"
        )


def answer_of_package(name: str, known: Iterable[str]) -> str:
    """Why the package has no such name, and what to write instead."""
    cure = PACKAGE.get(name, "") or MODULES.get(name, "")
    if not cure:
        near = closest(name, known)
        cure = f"did you mean daws.{near}?" if near else "dir(daws) lists all names"
    return f"module 'daws' has no attribute {name!r}: {cure}"


def answer_of_futures(name: str, known: Iterable[str]) -> str:
    """Why `daws.futures` has no such name, and what to write instead."""
    near = closest(name, known)
    cure = f"did you mean daws.futures.{near}?" if near else f"there are {', '.join(known)}"
    return f"module 'daws.futures' has no attribute {name!r}: {PACKAGE.get(name, '') or cure}"


def refuse_module(name: str) -> NoReturn:
    """A module of another library was looked for in this package."""
    raise ModuleNotFoundError(f"there is no module {name!r}: {MODULES[name.removeprefix('daws.')]}", name=name)


def _said(name: str, value: Any) -> str:
    if name in GPUS:
        return "context='gpu'"
    if name == "resources" and isinstance(value, Mapping):
        return f"context={next(iter(value), 'gpu')!r:.40}"
    return f"{TASK_OPTIONS.get(name, '') or name}={value!r:.40}"


def _refuse(whose: str, name: str, cures: Mapping[str, str], known: Iterable[str]) -> NoReturn:
    cure = cures.get(name, "")
    if not cure:
        near = closest(name, known) or closest(name, cures, 0.8)
        rest = ", ".join(known)
        cure = f"there are {rest}" if rest else "leave it out"
        if near:
            cure = cures.get(near, f"did you mean {near}=?")
    raise UsageError(f"{whose} has no option {name!r}: {cure}")
