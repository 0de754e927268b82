/* Reads numbers and prints them in order. */
#include <stdio.h>

static int numbers[64];

static void sort(int *first, int *last)
{
    int *left = first, *right = last;
    if (first >= last) return;
    int pivot = first[(last - first) / 2];
    while (left <= right) {
        while (*left < pivot) left++;
        while (*right > pivot) right--;
        if (left <= right) {
            int kept = *left;
            *left++ = *right;
            *right-- = kept;
        }
    }
    sort(first, right);
    sort(left, last);
}

int main(void)
{
    int count = 0;
    while (count < 64 && scanf("%d", &numbers[count]) == 1) count++;
    sort(numbers, numbers + count - 1);
    for (int i = 0; i < count; i++) printf("%d%c", numbers[i], i + 1 < count ? ' ' : '\n');
    return 0;
}
