"""There is no `daws.distributed`: whoever imports it is told what to write instead."""

from daws.client.hints import refuse_module

refuse_module("daws.distributed")
