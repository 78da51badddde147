"""There is no `daws.dataframe`: whoever imports it is told what to write instead."""

from daws.client.hints import refuse_module

refuse_module("daws.dataframe")
