"""Writes tests/golden/data/argsort_killer.json: numpy.argsort(-lengths) of sequences on which the median of three is a bad pivot at every
level, so that its introsort falls back to a heap sort (numpy 1.24.2, whose argsort of 64-bit integers is the scalar one on every CPU).
usage: python tools/reference/argsort_killer.py OUT.json"""

import json
import sys

import numpy as np


def killer(count):
    """Musser's median-of-3 killer for an even count, as lengths: descending order is what is sorted for."""
    half = count // 2
    values = [0] * count
    for i in range(half):
        values[2 * i] = i + 1 if i % 2 == 0 else half + i + (1 if half % 2 == 0 else 0)
    for i in range(half):
        values[i] = i + 1 if i % 2 == 0 else half + i
        values[half + i] = 2 * (i + 1)
    return values


def adversary(count):
    """McIlroy's adversary in its plain form: sort an array of 'gas' values and let each comparison freeze what it must."""
    # numpy cannot call back, so the sort of numpy is replayed here with its pivots to find the values that hurt it.
    gas, solid, values = count, 0, [count] * count
    candidate = None

    def before(a, b):
        nonlocal solid, candidate
        if values[a] == gas and values[b] == gas:
            if a == candidate:
                values[a] = solid
            else:
                values[b] = solid
            solid += 1
        if values[a] == gas:
            candidate = a
        elif values[b] == gas:
            candidate = b
        return values[a] < values[b]

    order = list(range(count))
    stack = [(0, count - 1)]
    while stack:
        left, right = stack.pop()
        while right - left > 15:
            middle = left + (right - left) // 2
            for low, high in ((left, middle), (middle, right), (left, middle)):
                if before(order[high], order[low]):
                    order[low], order[high] = order[high], order[low]
            pivot = order[middle]
            order[middle], order[right - 1] = order[right - 1], order[middle]
            i, j = left, right - 1
            while True:
                i += 1
                while before(order[i], pivot):
                    i += 1
                j -= 1
                while before(pivot, order[j]):
                    j -= 1
                if i >= j:
                    break
                order[i], order[j] = order[j], order[i]
            order[i], order[right - 1] = order[right - 1], order[i]
            if i - left < right - i:
                stack.append((i + 1, right))
                right = i - 1
            else:
                stack.append((left, i - 1))
                left = i + 1
    return [gas - v for v in values]  # ascending in v is descending in length


def main():
    assert np.__version__ == "1.24.2", np.__version__
    rows = []
    for name, lengths in (("killer 600", killer(600)), ("adversary 700", adversary(700)), ("adversary 1000, pairs", [v // 2 + 1 for v in adversary(1000)])):
        order = np.argsort(-np.array(lengths, dtype=np.int64))
        rows.append({"name": name, "lengths": lengths, "order": order.tolist()})
    with open(sys.argv[1], "w") as out:
        json.dump({"rows": rows}, out)
        out.write("\n")


if __name__ == "__main__":
    main()
