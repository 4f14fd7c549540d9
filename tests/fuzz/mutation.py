"""Damage to bytes, as disks, networks and hostile people do it."""


def damaged(random, whole, around=()):
    """Returns bytes with one to three faults.

    Args:
        random: A `random.Random`.
        whole: The bytes.
        around: Ranges of places where to look first, such as of a footer.
    """
    data = bytearray(whole)
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        if not data:
            break
        start, stop = random.choice([(0, len(data)), *around])
        at = random.randrange(min(start, len(data) - 1), max(min(stop, len(data)), start + 1))
        at = min(at, len(data) - 1)
        length = random.choice([1, 2, 4, 8, 50])
        match random.choice(["bit"] * 6 + ["byte", "byte", "fill", "cut", "insert", "copy", "end"]):
            case "bit":
                data[at] ^= 1 << random.randrange(8)
            case "byte":
                data[at] = random.choice([0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)])
            case "fill":
                data[at : at + length] = bytes([random.choice([0, 0xFF])]) * length
            case "cut":
                del data[at : at + length]
            case "insert":
                data[at:at] = random.randbytes(length)
            case "copy":
                other = random.randrange(len(data))
                data[at : at + length] = data[other : other + length]
            case "end":
                del data[at:]
    return bytes(data)
