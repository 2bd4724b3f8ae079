#!/usr/bin/env python3
"""Fits the polynomials of src/kernel/vmath.h and prints them as C (needs mpmath).

Each fits target(x) by sum(c[k] * basis(x)^k): weighted least squares on Chebyshev points, which comes close to
the minimax polynomial. The coefficients are rounded to float one after another, lowest power first, and those
that are left are fitted again, so that later ones make up for the rounding of earlier ones. Printed with each
is the largest weighted error of the rounded polynomial, evaluated exactly."""

import re
import struct
from mpmath import atan, atanh, cos, erf, erfc, exp, expm1, log, log1p, lu_solve, matrix, mp, mpf, pi, sin, sqrt

mp.dps = 60


def to_float(c):
    """Nearest float32."""
    return mpf(struct.unpack("f", struct.pack("f", float(c)))[0])


def points(low, high, n):
    return [(low + high) / 2 - (high - low) / 2 * cos(pi * (k + mpf(1) / 2) / n) for k in range(n)]


def least_squares(rows, values):
    columns = len(rows[0])
    a = matrix(columns, columns)
    b = matrix(columns, 1)
    for i in range(columns):
        for j in range(columns):
            a[i, j] = sum(row[i] * row[j] for row in rows)
        b[i] = sum(row[i] * value for row, value in zip(rows, values))
    return lu_solve(a, b)


def fit(name, target, weight, count, low, high, basis=lambda x: x):
    low, high = mpf(low), mpf(high)
    xs = points(low, high, 8 * count)
    f, w, b = [target(x) for x in xs], [weight(x) for x in xs], [basis(x) for x in xs]
    done = []
    while len(done) < count:
        rest = [w[i] * (f[i] - sum(c * b[i] ** k for k, c in enumerate(done))) for i in range(len(xs))]
        rows = [[w[i] * b[i] ** k for k in range(len(done), count)] for i in range(len(xs))]
        done.append(to_float(least_squares(rows, rest)[0]))
    error = lambda x: weight(x) * (target(x) - sum(c * basis(x) ** k for k, c in enumerate(done)))
    worst = max(abs(error(x)) for x in points(low, high, 1000))
    print(f"/* {name}: 2^{float(log(worst, 2)):.1f} on [{float(low):.5g}, {float(high):.5g}] */")
    print("{" + ", ".join(re.sub(r"\.?0*p", "p", float(c).hex()) + "f" for c in done) + "}")


def fit_quotient(name, target, weight, tops, bottoms, low, high):
    """target(x) by a quotient of polynomials, the constant of the lower one 1: least squares on target * lower - upper,
    again and again with the weights that the last quotient and its errors give, which ends near the minimax one."""
    xs = points(mpf(low), mpf(high), 120)
    f, w, extra = [target(x) for x in xs], [weight(x) for x in xs], [mpf(1)] * len(xs)
    bottom = [mpf(1)] + [mpf(0)] * (bottoms - 1)
    value = lambda c, x: sum(v * x**k for k, v in enumerate(c))
    for turn in range(12):
        rows, values = [], []
        for i, x in enumerate(xs):
            s = w[i] * extra[i] / value(bottom, x)
            rows.append([s * x**k for k in range(tops)] + [-s * f[i] * x**k for k in range(1, bottoms)])
            values.append(s * f[i])
        c = least_squares(rows, values)
        top, bottom = [c[k] for k in range(tops)], [mpf(1)] + [c[k] for k in range(tops, tops + bottoms - 1)]
        errors = [abs(w[i] * (f[i] - value(top, x) / value(bottom, x))) for i, x in enumerate(xs)]
        if turn >= 3:
            extra = [extra[i] * sqrt(mpf("0.3") + e / max(errors)) for i, e in enumerate(errors)]
    print(f"/* {name}: 2^{float(log(max(errors), 2)):.1f} on [{float(low):.5g}, {float(high):.5g}] */")
    for c in (top, bottom):
        print("{" + ", ".join(re.sub(r"\.?0*p", "p", float(to_float(v)).hex()) + "f" for v in c) + "}")


def fit_pieces(name, target, scale, pieces, count):
    """target(x) for x >= 0 by a polynomial in scale x - k for each k below `pieces`, relative errors the same: the
    coefficients of one power in a row, and a 0 at its end for what is above."""
    rows, worst, xs = [], mpf(0), points(mpf(-0.5), mpf(0.5), 8 * count)
    for k in range(pieces):
        f, done = [target((k + x) / scale) for x in xs], []
        while len(done) < count:
            rest = [1 - sum(c * x**n for n, c in enumerate(done)) / v for x, v in zip(xs, f)]
            powers = [[x**n / v for n in range(len(done), count)] for x, v in zip(xs, f)]
            done.append(to_float(least_squares(powers, rest)[0]))
        worst = max([worst] + [abs(1 - sum(c * x**n for n, c in enumerate(done)) / v) for x, v in zip(xs, f)])
        rows.append(done)
    print(f"/* {name}: 2^{float(log(worst, 2)):.1f} up to {float((pieces - 0.5) / scale):.5g} */")
    for n in range(count):
        print("{" + ", ".join(re.sub(r"\.?0*p", "p", float(row[n]).hex()) + "f" for row in rows) + ", 0.0f},")


def with_limit(value, limit):
    """A function whose value at 0 is a limit."""
    return lambda x: mpf(limit) if abs(x) < mpf(10) ** -15 else value(x)


def main():
    # ln(2) / 2 and a little more: the multiple of ln(2) is rounded from an inexact product
    fit("exp: (e^r - 1 - r) / r^2", with_limit(lambda r: (expm1(r) - r) / r**2, 0.5),
        with_limit(lambda r: r**2 / expm1(r), 0), 5, "-0.3475", "0.3475")
    fit("log: (log1p(f) - f + f^2/2) / f^3", with_limit(lambda f: (log1p(f) - f + f * f / 2) / f**3, mpf(1) / 3),
        with_limit(lambda f: f**3 / log1p(f), 0), 8, "-0.33334", "0.33334")
    fit("softplus: (log1p(e) - e) / e^2", with_limit(lambda e: (log1p(e) - e) / e**2, -0.5),
        with_limit(lambda e: e**2 / log1p(e), 0), 9, 0, "1.0001")
    fit("erf, small: erf(x) / x - 1, in x^2", with_limit(lambda x: erf(x) / x - 1, 2 / sqrt(pi) - 1),
        with_limit(lambda x: x / erf(x), sqrt(pi) / 2), 6, 0, "0.93", lambda x: x * x)
    fit("erf, large: -log(erfc(x))", lambda x: -log(erfc(x)), lambda x: erfc(x) / erf(x), 7, "0.92", "4.0")
    # t Q(t) = y P(y - 0.5) e^(-t^2/2): Q the upper tail of the normal distribution, y = t / (t + 4)
    tail = lambda t: (t + 4) * erfc(t / sqrt(mpf(2))) / 2 * exp(t * t / 2)
    t_of = lambda y: 4 * y / (1 - y)
    fit("normal tail: P(y - 0.5)", lambda v: tail(t_of(v + 0.5)), lambda v: 1 / tail(t_of(v + 0.5)), 10, "-0.5", "0.285")
    fit_pieces("normal tail, in pieces", lambda t: erfc(t / sqrt(mpf(2))) / 2, mpf("5.5"), 31, 7)
    # In x^2. The derivative of x Phi(x) is 1/2 and an odd function.
    odd = lambda t: erf(sqrt(t / 2)) / 2 / sqrt(t) + exp(-t / 2) / sqrt(2 * pi)
    fit_quotient("gelu's derivative: (d/dx x Phi(x) - 1/2) / x, in x^2", with_limit(odd, 2 / sqrt(2 * pi)), sqrt, 8, 7, 0, 36)
    fit("sin: (sin(r) - r) / r^3, in r^2", with_limit(lambda r: (sin(r) - r) / r**3, -mpf(1) / 6),
        with_limit(lambda r: r**3 / sin(r), 0), 3, 0, "0.79", lambda r: r * r)
    fit("cos: (cos(r) - 1 + r^2/2) / r^4, in r^2", with_limit(lambda r: (cos(r) - 1 + r * r / 2) / r**4, mpf(1) / 24),
        lambda r: r**4 / cos(r), 3, 0, "0.79", lambda r: r * r)
    fit("atan: (atan(z) - z) / z^3, in z^2", with_limit(lambda z: (atan(z) - z) / z**3, -mpf(1) / 3),
        with_limit(lambda z: z**3 / atan(z), 0), 5, 0, "0.4143", lambda z: z * z)
    fit("pow: (atanh(s) - s - s^3/3) / s^5, in s^2",
        with_limit(lambda s: (atanh(s) - s - s**3 / 3) / s**5, mpf(1) / 5), with_limit(lambda s: s**5 / atanh(s), 0),
        4, 0, "0.2001", lambda s: s * s)


if __name__ == "__main__":
    main()
