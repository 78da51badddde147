"""There is no `daws.array`: whoever imports it is told what to write instead."""

from daws.client.hints import refuse_module

refuse_module("daws.array")
