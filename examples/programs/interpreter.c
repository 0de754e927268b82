/* An interpreter of a small language, which runs a program of its own, or one that is given as input.

   Variables are a to z. Statements:   a = expression   ! expression (print)   [expression statements ] (while)
   Expressions, from left to right:    numbers, variables, + - * / % < = and parentheses */
#include <stdio.h>

static const char own[] =
    "n = 2 "
    "[ n < 30 "
    "  p = 1 d = 2 "
    "  [ d * d < (n + 1) [ (n % d = 0) * p p = 0 ] d = d + 1 ] "
    "  [ p ! n p = 0 ] "
    "  n = n + 1 "
    "]";

static char text[512];
static int variables[26];
static const char *at;

static int expression(void);

static void spaces(void)
{
    while (*at == ' ' || *at == '\n' || *at == '\t') at++;
}

static int operand(void)
{
    int value = 0;
    spaces();
    if (*at == '(') {
        at++;
        value = expression();
        if (*at == ')') at++;
    } else if (*at >= 'a' && *at <= 'z') {
        value = variables[*at++ - 'a'];
    } else {
        while (*at >= '0' && *at <= '9') value = 10 * value + *at++ - '0';
    }
    spaces();
    return value;
}

static int expression(void)
{
    int value = operand();
    for (;;) {
        char operation = *at;
        /* `a = ...` after an expression is the next statement only where a variable stands before it. */
        if (operation == 0 || !(operation == '+' || operation == '-' || operation == '*' || operation == '/' ||
                                operation == '%' || operation == '<' || operation == '='))
            return value;
        at++;
        int right = operand();
        if (operation == '+') value += right;
        else if (operation == '-') value -= right;
        else if (operation == '*') value *= right;
        else if (operation == '/') value = right ? value / right : 0;
        else if (operation == '%') value = right ? value % right : value;
        else if (operation == '<') value = value < right;
        else value = value == right;
    }
}

/* Skips to the bracket that closes the one before. */
static void skip(void)
{
    int depth = 1;
    while (*at && depth) {
        if (*at == '[') depth++;
        if (*at == ']') depth--;
        at++;
    }
}

static void statements(void)
{
    for (;;) {
        spaces();
        if (*at == '!') {
            at++;
            printf("%d\n", expression());
        } else if (*at == '[') {
            const char *begin = ++at;
            while (expression()) {
                statements();
                at = begin;
            }
            skip();
        } else if (*at >= 'a' && *at <= 'z') {
            int variable = *at++ - 'a';
            spaces();
            if (*at != '=') return;
            at++;
            variables[variable] = expression();
        } else {
            return;
        }
    }
}

int main(void)
{
    int length = 0, c;
    while (length < (int)sizeof text - 1 && (c = getchar()) != EOF) text[length++] = (char)c;
    at = length ? text : own;
    statements();
    return 0;
}
