/* Conway's Game of Life on a torus: a glider, printed as text. Reads how many generations, by default 4. */
#include <stdio.h>

#define SIZE 8

static unsigned char cells[SIZE][SIZE], next[SIZE][SIZE];

static void show(void)
{
    for (int row = 0; row < SIZE; row++) {
        for (int column = 0; column < SIZE; column++) putchar(cells[row][column] ? '#' : '.');
        putchar('\n');
    }
    putchar('\n');
}

static int neighbours(int row, int column)
{
    int count = 0;
    for (int down = SIZE - 1; down <= SIZE + 1; down++)
        for (int right = SIZE - 1; right <= SIZE + 1; right++)
            count += cells[(row + down) % SIZE][(column + right) % SIZE];
    return count - cells[row][column];
}

int main(void)
{
    int generations;
    if (scanf("%d", &generations) != 1) generations = 4;
    cells[0][1] = cells[1][2] = cells[2][0] = cells[2][1] = cells[2][2] = 1;
    show();
    while (generations-- > 0) {
        for (int row = 0; row < SIZE; row++)
            for (int column = 0; column < SIZE; column++) {
                int count = neighbours(row, column);
                next[row][column] = count == 3 || (count == 2 && cells[row][column]);
            }
        for (int row = 0; row < SIZE; row++)
            for (int column = 0; column < SIZE; column++) cells[row][column] = next[row][column];
        show();
    }
    return 0;
}
