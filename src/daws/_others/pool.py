"""There is no `daws.pool`: whoever imports it is told what to write instead."""

from daws.client.hints import refuse_module

refuse_module("daws.pool")
