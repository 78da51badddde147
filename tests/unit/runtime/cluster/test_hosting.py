"""A node in a process of its own."""

from daws.runtime.cluster.hosting import NodeCrew


def test_devices_are_those_of_the_machine_whatever_the_number_of_the_node():
    crew = NodeCrew(2, devices=(("gpu", 2), ("fpga", 1)))
    assert [crew.device_of(17, slot) for slot in range(5)] == [-1, -1, 0, 1, 0]
