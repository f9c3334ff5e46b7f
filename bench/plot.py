"""Line charts as SVG: logarithmic axes, one colour a series, a legend. Nothing but the standard library."""
import math

COLOURS = ("#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#0f766e")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 380, 76, 150, 40, 52


def ticks(low, high, logarithmic):
    if logarithmic:
        steps = range(math.floor(math.log2(low)), math.ceil(math.log2(high)) + 1)
        values = [2.0 ** step for step in steps if low * 0.999 <= 2.0 ** step <= high * 1.001]
        return values[:: max(1, len(values) // 8 + (len(values) % 8 > 0))] if len(values) > 8 else values or [low, high]
    step = 10 ** math.floor(math.log10((high - low) / 4))
    step = next(step * factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 6)
    first = math.ceil(low / step)
    return [step * (first + i) for i in range(int((high - low * 1.0) / step) + 1) if step * (first + i) <= high * 1.0001]


def label(value):
    if value >= 1024 and value % 1024 == 0:
        return f"{value / 1024:g}k"
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def line_chart(path, title, x_name, y_name, series, log_x=False, log_y=False):
    """series: {name: [(x, y), ...]}."""
    points = [point for line in series.values() for point in line]
    low_x, high_x = min(x for x, _ in points), max(x for x, _ in points)
    low_y, high_y = min(y for _, y in points), max(y for _, y in points)
    if not log_y:
        margin = 0.05 * (high_y - low_y or 1)
        low_y, high_y = low_y - margin, high_y + margin
    elif low_y == high_y:
        low_y, high_y = low_y / 2, high_y * 2

    def place(value, low, high, logarithmic, begin, end):
        if logarithmic:
            value, low, high = math.log(value), math.log(low), math.log(high)
        return begin + (value - low) / ((high - low) or 1) * (end - begin)

    def at(x, y):
        return (place(x, low_x, high_x, log_x, LEFT, WIDTH - RIGHT), place(y, low_y, high_y, log_y, HEIGHT - BOTTOM, TOP))

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>', f'<text x="{LEFT}" y="22" font-size="14">{title}</text>']
    for value in ticks(low_x, high_x, log_x):
        x, _ = at(value, low_y)
        out.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#e5e7eb"/>'
                   f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{label(value)}</text>')
    for value in ticks(low_y, high_y, log_y):
        _, y = at(low_x, value)
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#e5e7eb"/>'
                   f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label(value)}</text>')
    for i, (name, line) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        path_text = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in line))
        out.append(f'<polyline points="{path_text}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if len(line) <= 20:
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in (at(*point) for point in line)]
        y = TOP + 10 + 18 * i
        out.append(f'<rect x="{WIDTH - RIGHT + 14}" y="{y - 8}" width="12" height="4" fill="{colour}"/>'
                   f'<text x="{WIDTH - RIGHT + 32}" y="{y}">{name}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{x_name}</text>'
               f'<text transform="translate(18,{(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">{y_name}</text></svg>')
    path.write_text("\n".join(out) + "\n")
