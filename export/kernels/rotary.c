/* Pairs of the first `turned` of the heads' features turned by the angle of their position, or back: the table has
 * their cosines, then their sines. Pairs are neighbours, or half the turned features apart. y may be x. */
#ifndef KERNEL_ROTARY
#define KERNEL_ROTARY

static void rotary(float *y /* [sequences, time, heads, features] */, const float *x,
                   const float *table /* [positions, turned_features] from the first position on */,
                   int sequences, int time, int heads, int turned, int features, int turned_features,
                   int interleaved, int back)
{
    int pairs = turned_features / 2;
    for (int r = 0; r < sequences * time * heads; r++, x += features, y += features) {
        const float *angles = table + r / heads % time * turned_features;
        int turns = r % heads < turned;
        for (int i = 0; turns && i < pairs; i++) {
            int a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + pairs;
            float c = angles[i], s = back ? -angles[pairs + i] : angles[pairs + i], u = x[a], v = x[b];
            y[a] = u * c - v * s;
            y[b] = v * c + u * s;
        }
        for (int i = turns ? turned_features : 0; i < features; i++)
            y[i] = x[i];
    }
}

#endif /* KERNEL_ROTARY */
