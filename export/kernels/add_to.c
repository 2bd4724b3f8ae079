/* y += x */
static void add_to(float *y /* [count] */, const float *x /* [count] */, int count)
{
    for (int i = 0; i < count; i++)
        y[i] += x[i];
}
