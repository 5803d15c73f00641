# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdict on the card: works, has no driver in this guest, or is broken. Facts come from the guest's card-state."""

from dataclasses import dataclass, field

from .errors import DeviceBroken, DriverMissing


@dataclass
class Card:
    address: str
    id: str
    driver: str  # "none" when unbound
    claimed: bool  # the driver's table names this id
    disks: int
    links: int  # phys with a link


@dataclass
class CardState:
    kernel: str = ""
    module: str = ""
    module_state: str = ""  # loaded, loading, builtin, available, absent
    cards: list = field(default_factory=list)


def parse(text):
    state = CardState()
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key == "kernel":
            state.kernel = value
        elif key == "module":
            state.module, _, state.module_state = value.partition(" ")
        elif key == "card":
            address, *facts = value.split()
            fact = dict(word.split("=", 1) for word in facts)
            state.cards.append(
                Card(
                    address,
                    fact["id"],
                    fact["driver"],
                    fact["claimed"] == "yes",
                    int(fact["disks"]),
                    int(fact["links"]),
                )
            )
    return state


def judge(state, cards, disks):
    """Raises with one clear line unless `cards` cards are driven and show `disks` disks (None: one a link)."""
    if len(state.cards) < cards:
        raise DeviceBroken(f"device broken: the guest's PCI buses show {len(state.cards)} of {cards} cards")
    if state.module_state == "loading":
        raise DeviceBroken(f"device broken: {state.module} has not come to the end of its probe")
    for card in state.cards:
        if card.driver == "none":
            raise unbound(state, card)
    found = sum(card.disks for card in state.cards)
    wanted = disks if disks is not None else sum(card.links for card in state.cards)
    if found < wanted:
        links = sum(card.links for card in state.cards)
        raise DeviceBroken(
            f"device broken: {state.module} drives the card, but {found} of {wanted} disks came up"
            f" ({links} phys report a link)"
        )


def unbound(state, card):
    where = f"the card {card.address} [{card.id}] is on the bus"
    if state.module_state == "absent":
        return DriverMissing(f"driver missing in this guest: {where}, but kernel {state.kernel} has no {state.module}")
    if state.module_state == "available":
        return DriverMissing(f"driver missing in this guest: {where}, and {state.module} exists but was not loaded")
    if state.module_state == "loaded" and not card.claimed:
        return DriverMissing(
            f"driver missing in this guest: {where}, but {state.module} of kernel {state.kernel} does not claim that id"
        )
    return DeviceBroken(f"device broken: {where} and {state.module} is loaded, but its probe failed")
