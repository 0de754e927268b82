/* scanf and its relatives. */

struct scanned {
    const char *text;  /* or the standard input */
    int count;         /* characters that were taken */
};

static int next_of(struct scanned *from)
{
    int c = !from->text ? next_byte() : *from->text ? (unsigned char)*from->text++ : EOF;
    from->count += c != EOF;
    return c;
}

static void back_to(struct scanned *from, int c)
{
    if (c == EOF) return;
    from->count--;
    if (from->text) from->text--;
    else give_back(c);
}

static int after_space(struct scanned *from)
{
    int c;
    do c = next_of(from);
    while (isspace(c));
    return c;
}

/* Whether a character is in a set such as [a-z] or [^=]; `set` begins after the bracket. */
static int in_set(const char *set, const char *end, int c)
{
    int negated = *set == '^', found = 0;
    for (set += negated; set < end; set++) {
        if (set + 2 < end && set[1] == '-') {
            found |= (unsigned char)set[0] <= c && c <= (unsigned char)set[2];
            set += 2;
        } else {
            found |= (unsigned char)*set == c;
        }
    }
    return c != EOF && found != negated;
}

static void store(void *to, int longs, unsigned long long value)
{
    if (longs > 1) *(unsigned long long *)to = value;
    else if (longs == -1) *(unsigned short *)to = (unsigned short)value;
    else if (longs == -2) *(unsigned char *)to = (unsigned char)value;
    else *(unsigned *)to = (unsigned)value;
}

/* A number without a point, of at most `width` characters; whether there was one. */
static int scan_whole(struct scanned *from, int width, unsigned base, unsigned long long *result, int *last)
{
    unsigned long long value = 0;
    int some = 0, c = after_space(from), negative = c == '-';
    if ((c == '-' || c == '+') && --width) c = next_of(from);
    if (c == '0' && (base == 0 || base == 16)) {
        some = 1;
        if (--width) c = next_of(from);
        else c = EOF;
        if ((c | 32) == 'x' && width) {
            base = 16;
            c = --width ? next_of(from) : EOF;
        } else if (base == 0) {
            base = 8;
        }
    }
    if (base == 0) base = 10;
    while (width && digit_of(c) < base) {
        value = value * base + digit_of(c);
        some = 1;
        c = --width ? next_of(from) : EOF;
    }
    if (width) back_to(from, c);
    *last = c;
    *result = negative ? 0 - value : value;
    return some;
}

#ifdef TAPEGRAD_FLOATS

static int scan_float(struct scanned *from, int width, double *result, int *last)
{
    char buffer[48], *end;
    int length = 0, c = after_space(from);
    while (length < 47 && width) {
        int sign_may_be = length == 0 || (buffer[length - 1] | 32) == 'e';
        if (!isdigit(c) && c != '.' && (c | 32) != 'e' && !((c == '-' || c == '+') && sign_may_be)) break;
        buffer[length++] = (char)c;
        c = --width ? next_of(from) : EOF;
    }
    buffer[length] = 0;
    if (width) back_to(from, c);
    *last = c;
    *result = float_in(buffer, &end);
    return end != buffer;
}

#endif

static int scan(struct scanned *from, const char *format, va_list given)
{
    va_list values;
    int found = 0, c = 0;
    va_copy(values, given);
    for (; *format; format++) {
        int width = 0, kept = 1, longs = 0;
        if (isspace(*format)) {
            back_to(from, after_space(from));
            continue;
        }
        if (*format != '%' || *++format == '%') {
            c = *format == '%' ? after_space(from) : next_of(from);
            if (c == (unsigned char)*format) continue;
            back_to(from, c);
            break;
        }
        if (*format == '*') {
            kept = 0;
            format++;
        }
        while (isdigit(*format)) width = 10 * width + *format++ - '0';
        for (;; format++) {
            if (*format == 'l') longs++;
            else if (*format == 'j' || *format == 'L') longs = 2;
            else if (*format == 'h') longs--;
            else if (*format != 'z' && *format != 't') break;
        }
        if (*format == 'n') {
            if (kept) store(va_arg(values, void *), longs, (unsigned)from->count);
            continue;
        }
        if (*format == 'c') {
            char *to = kept ? va_arg(values, char *) : 0;
            int left = width ? width : 1;
            while (left && (c = next_of(from)) != EOF) {
                if (to) *to++ = (char)c;
                left--;
            }
            if (left) break;
        } else if (*format == 's' || *format == '[') {
            const char *set = format + 1, *end = set;
            char *to = kept ? va_arg(values, char *) : 0;
            int some = 0, is_set = *format == '[';
            if (is_set) {
                end += *end == '^';
                if (*end) end++;
                while (*end && *end != ']') end++;
                format = *end ? end : end - 1;
            }
            c = is_set ? next_of(from) : after_space(from);
            for (; c != EOF && (is_set ? in_set(set, end, c) : !isspace(c)); c = next_of(from)) {
                if (to) *to++ = (char)c;
                some++;
                if (some == width) break;
            }
            if (!some || some != width) back_to(from, c);
            if (!some) break;
            if (to) *to = 0;
#ifdef TAPEGRAD_FLOATS
        } else if (is_among(*format, "fFeEgGaA")) {
            double value;
            if (!scan_float(from, width ? width : -1, &value, &c)) break;
            if (kept && longs > 1) lengthened(value, va_arg(values, long double *));
            else if (kept && longs) *va_arg(values, double *) = value;
            else if (kept) *va_arg(values, float *) = (float)value;
#endif
        } else {
            unsigned long long value;
            unsigned base = is_among(*format, "xXp") ? 16 : *format == 'o' ? 8 : *format == 'i' ? 0 : 10;
            if (!scan_whole(from, width ? width : -1, base, &value, &c)) break;
            if (kept) store(va_arg(values, void *), longs, value);
        }
        found += kept;
        c = 0;
    }
    va_end(values);
    return found == 0 && c == EOF ? EOF : found;
}

static int scan_input(const char *format, va_list values)
{
    struct scanned from = {0, 0};
    return scan(&from, format, values);
}

static int scan_text(const char *text, const char *format, va_list values)
{
    struct scanned from = {text, 0};
    return scan(&from, format, values);
}

LIBRARY int scanf(const char *format, ...) WITH_VALUES(format, scan_input(format, values))

LIBRARY int fscanf(FILE *file, const char *format, ...)
    WITH_VALUES(format, file->number ? EOF : scan_input(format, values))

LIBRARY int sscanf(const char *text, const char *format, ...) WITH_VALUES(format, scan_text(text, format, values))

LIBRARY int vscanf(const char *format, va_list values) { return scan_input(format, values); }

LIBRARY int vfscanf(FILE *file, const char *format, va_list values)
{
    return file->number ? EOF : scan_input(format, values);
}

LIBRARY int vsscanf(const char *text, const char *format, va_list values) { return scan_text(text, format, values); }
