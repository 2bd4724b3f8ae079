/* The order in which shares are added: a binary tree that depends on their number alone.
 *
 *   7 shares:     ((0 + 1) + (2 + 3)) + ((4 + 5) + 6)
 */
#include "train/ranks.h"

int mica_shares_middle(mica_shares node)
{
    int left = 1;
    while (2 * left < node.end - node.first)
        left *= 2;
    return node.first + left;
}

bool mica_shares_join(int all, mica_shares left, mica_shares right)
{
    mica_shares node = {0, all};
    while (node.end - node.first > 1) {
        int middle = mica_shares_middle(node);
        if (node.first == left.first && node.end == right.end)
            return middle == right.first;
        if (right.end <= middle)
            node.end = middle;
        else if (left.first >= middle)
            node.first = middle;
        else
            return false;
    }
    return false;
}

/* Nodes of a subtree that lie within the row: the walk goes down its two edges only. */
static int cut(mica_shares *out, int count, mica_shares node, mica_shares row)
{
    if (node.end <= row.first || row.end <= node.first)
        return count;
    if (row.first <= node.first && node.end <= row.end) {
        out[count] = node;
        return count + 1;
    }
    int middle = mica_shares_middle(node);
    count = cut(out, count, (mica_shares){node.first, middle}, row);
    return cut(out, count, (mica_shares){middle, node.end}, row);
}

int mica_shares_cut(mica_shares *out, int all, mica_shares row)
{
    return cut(out, 0, (mica_shares){0, all}, row);
}
