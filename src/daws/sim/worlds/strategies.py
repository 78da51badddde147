"""Strategies that worlds draw from. Each table is closed: one more entry would change what remembered seeds mean."""

FIRST = ("mlb", "mdl", "rlds", "flds", "matrix", "adage", "constellation", "master-worker", "random")
"""The presets that were there when seeds began to be remembered."""
LATER = (
    "albatross",
    "sparrow",
    "data-diffusion",
    "heft",
    "data-diffusion:policy=max-cache-hit,cache=none",
    "sparrow:probes=1,count=3,assign=one",
    "albatross:overload=0.5,probes=2",
    "flds:place=earliest,balance=lifelines,cache=lru,lru-gb=0.003",
    "matrix:replicate=stragglers,seen=2,quantile=0.5,slack=1,least-ms=1",
    "constellation:replicate=stragglers,seen=1,quantile=0.1,slack=1,least-ms=0,copies=2,delay-ms=5",
    "mlb:balance=lifelines,tries=0,replicate=stragglers,seen=1,slack=1,least-ms=1",
)
"""Presets and answers that were added later."""
PLANNED = (
    "daws",
    "daws:settle=0,tt=0,t=inf",
    "daws:replicate=stragglers,seen=2,quantile=0.5,slack=1,least-ms=1",
    "daws:balance=give,replicate=given,period-ms=4,period-max-ms=20,validate-s=0.3",
    "daws",
    "daws:t=0,relax=never",
    "daws:balance=lifelines,cache=lru,lru-gb=0.003",
)
"""The default and its variants."""
ALTERED = (
    "flds:balance=none",
    "mlb:cache=none",
    "mlb:assign=one,share=0.9",
    "mdl:order=critical-path",
    "rlds:t=0.01,balance=random-steal,count=3",
    "matrix:place=random,tt=0.01",
    "matrix:assign=data,order=submission",
    "adage:copies=3,period-ms=4,period-max-ms=20",
    "adage:replicate=never,period-max-ms=20",
    "constellation:delay-ms=10,count=4",
    "flds:place=home,assign=hashed",
)
"""Presets with one answer exchanged or numbers that are unusual."""
