"""Futures as arguments make the graph: anywhere inside lists, dicts and dataclasses."""

from dataclasses import dataclass
from typing import Any

import daws


@dataclass
class Order:
    amounts: list[Any]
    price: Any


def square(x: int) -> int:
    return x * x


def cost(order: Order, rates: dict[str, float]) -> float:
    return float(sum(order.amounts) * order.price * rates["tax"])


with daws.Cluster(workers=2) as cluster:
    amounts = [cluster.submit(square, x) for x in range(4)]
    price = cluster.submit(float, "2.5")
    total = cluster.submit(cost, Order(amounts, price), {"tax": 2.0})
    print(total.result())  # prints: 70.0
