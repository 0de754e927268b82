/* printf and its relatives. */

struct sink {
    char *to;  /* or a file, by its number */
    int file;
    size_t size, count;
};

static APART void emit(struct sink *sink, const char *text, int count)
{
    if (!sink->to) {
        put_bytes(sink->file, text, (size_t)count);
        sink->count += (size_t)count;
        return;
    }
    for (; count > 0; count--, text++, sink->count++)
        if (sink->count + 1 < sink->size) sink->to[sink->count] = *text;
}

static APART void emit_many(struct sink *sink, char c, int count)
{
    for (; count > 0; count--) emit(sink, &c, 1);
}

enum { LEFT = 1, ZEROS = 2, PLUS = 4, SPACE = 8, OTHER_FORM = 16, GROUPS = 32 };  /* in locale C there are no groups */

struct form {
    int flags, width, precision;  /* -1 if there is none */
    char kind;
};

static int flag_of(char c)
{
    static const char signs[] = "-0+ #'";
    for (int i = 0; signs[i]; i++)
        if (c == signs[i]) return 1 << i;
    return 0;
}

/* Digits, with the last at the end of a buffer. Each pass divides in three parts that fit a word. */
static char *digits(char *end, unsigned high, unsigned low, unsigned base, char ten)
{
    while (high || low) {
        unsigned digit;
        if (high) {
            unsigned rest = high % base, upper, lower;
            high /= base;
            upper = rest << 16 | low >> 16;
            lower = upper % base << 16 | (low & 0xffff);
            low = (upper / base) << 16 | lower / base;
            digit = lower % base;
        } else {
            digit = low % base;
            low /= base;
        }
        *--end = (char)(digit < 10 ? '0' + digit : ten + digit - 10);
    }
    return end;
}

/* A prefix, zeros and a text, in a field as wide as was asked for. */
static APART void field(struct sink *sink, const struct form *form, const char *prefix, int prefix_length, int zeros,
                        const char *text, int length)
{
    int room = form->width - prefix_length - zeros - length;
    if (!(form->flags & (LEFT | ZEROS))) emit_many(sink, ' ', room);
    emit(sink, prefix, prefix_length);
    if ((form->flags & (LEFT | ZEROS)) == ZEROS && room > 0) zeros += room;
    emit_many(sink, '0', zeros);
    emit(sink, text, length);
    if (form->flags & LEFT) emit_many(sink, ' ', room);
}

static int sign_of(int negative, int flags, char *prefix)
{
    *prefix = negative ? '-' : flags & PLUS ? '+' : ' ';
    return negative || (flags & (PLUS | SPACE));
}

static void print_whole(struct sink *sink, struct form *form, unsigned long long value)
{
    char buffer[24], *end = buffer + sizeof buffer, prefix[2] = {'0', 'x'}, kind = form->kind;
    int is_signed = kind == 'd' || kind == 'i', length, zeros, prefix_length = 0;
    unsigned base = is_signed || kind == 'u' ? 10 : kind == 'o' ? 8 : 16;
    if (is_signed) {
        prefix_length = sign_of((long long)value < 0, form->flags, prefix);
        if ((long long)value < 0) value = 0 - value;
    }
    if (kind == 'p' || (base == 16 && form->flags & OTHER_FORM && value)) prefix_length = 2;
    if (kind == 'X') prefix[1] = 'X';
    char *text = digits(end, (unsigned)(value >> 32), (unsigned)value, base, kind == 'X' ? 'A' : 'a');
    length = (int)(end - text);
    zeros = (form->precision < 0 ? 1 : form->precision) - length;
    if (base == 8 && form->flags & OTHER_FORM && zeros < 1) zeros = 1;
    if (form->precision >= 0) form->flags &= ~ZEROS;
    field(sink, form, prefix, prefix_length, zeros < 0 ? 0 : zeros, text, length);
}

#ifdef TAPEGRAD_FLOATS

/* %a: digits of four bits behind one of 0 or 1, times a power of two. */
static void print_bits(struct sink *sink, const struct form *form, unsigned long long mantissa, int exponent, char *prefix,
                       int prefix_length)
{
    const char *letters = form->kind == 'a' ? "0123456789abcdefxp" : "0123456789ABCDEFXP";
    char text[16], number[8], *tail = number + sizeof number;
    int precision = form->precision, kept, length = 0, power = exponent - 1023, size;
    if (exponent) mantissa |= 1ULL << 52;
    else power = mantissa ? -1022 : 0;
    if (precision < 0)
        for (precision = 13; precision && !(mantissa >> 4 * (13 - precision) & 15);) precision--;
    kept = precision < 13 ? precision : 13;
    if (kept < 13) {
        unsigned long long step = 1ULL << 4 * (13 - kept), rest = mantissa & (step - 1);
        mantissa -= rest;
        if (rest > step / 2 || (rest == step / 2 && mantissa & step)) mantissa += step;
    }
    prefix[prefix_length++] = '0';
    prefix[prefix_length++] = letters[16];
    for (int i = 0; i <= kept; i++) {
        text[length++] = letters[mantissa >> 4 * (13 - i) & 15];
        if (i == 0 && (precision || form->flags & OTHER_FORM)) text[length++] = '.';
    }
    size = power < 0 ? -power : power;
    do *--tail = (char)('0' + size % 10);
    while (size /= 10);
    *--tail = power < 0 ? '-' : '+';
    *--tail = letters[17];
    size = (int)(number + sizeof number - tail);
    size = form->width - (length + precision - kept + size);  /* what is left for the prefix and blanks */
    field(sink, &(struct form){form->flags & ~LEFT, form->flags & LEFT ? 0 : size, 0, 0}, prefix, prefix_length, 0, "", 0);
    emit(sink, text, length);
    emit_many(sink, '0', precision - kept);
    emit(sink, tail, (int)(number + sizeof number - tail));
    if (form->flags & LEFT) emit_many(sink, ' ', size - prefix_length);
}

static void print_float(struct sink *sink, struct form *form, double value)
{
    union bits held = {value};
    struct decimal number;
    char prefix[3], kind = (char)(form->kind | 32), tail[6];
    int sign = sign_of((int)(held.bits >> 63), form->flags, prefix), precision = form->precision < 0 ? 6 : form->precision;
    int exponent = (int)(held.bits >> 52 & 2047), high, top, length, tail_length = 0, point;
    unsigned long long mantissa = held.bits & 0xfffffffffffff;
    if (exponent == 2047) {
        const char *text = mantissa ? form->kind < 'a' ? "NAN" : "nan" : form->kind < 'a' ? "INF" : "inf";
        form->flags &= ~ZEROS;
        field(sink, form, prefix, sign, 0, text, 3);
        return;
    }
    if (kind == 'a') {
        print_bits(sink, form, mantissa, exponent, prefix, sign);
        return;
    }
    decimal_from(&number, exponent ? mantissa | 1ULL << 52 : mantissa, (exponent ? exponent : 1) - 1075);
    if (kind == 'g' && precision == 0) precision = 1;
    high = leading(&number);
    rounded(&number, kind == 'f' ? precision : precision - high - (kind == 'g'));
    high = leading(&number);  /* 9.99 becomes 10.0 */
    if (kind == 'g') {
        int plain = high >= -4 && high < precision;
        kind = plain ? 'f' : 'e';
        precision -= plain ? high + 1 : 1;
        top = plain ? 0 : high;
        if (!(form->flags & OTHER_FORM))
            while (precision > 0 && digit_at(&number, top - precision) == 0) precision--;
    }
    top = kind == 'e' ? high : 0;  /* the digit before the point */
    if (kind == 'e') {
        int size = high < 0 ? -high : high;
        tail[tail_length++] = form->kind < 'a' ? 'E' : 'e';
        tail[tail_length++] = high < 0 ? '-' : '+';
        if (size >= 100) tail[tail_length++] = (char)('0' + size / 100);
        tail[tail_length++] = (char)('0' + size / 10 % 10);
        tail[tail_length++] = (char)('0' + size % 10);
    }
    point = precision > 0 || form->flags & OTHER_FORM;
    if (high < top || kind == 'e') high = top;
    length = high - top + 1 + point + precision + tail_length;
    form->width -= length;
    field(sink, &(struct form){form->flags & ~LEFT, form->flags & LEFT ? 0 : form->width, 0, 0}, prefix, sign, 0, "", 0);
    for (int place = high; place >= top - precision; place--) {
        char digit = (char)('0' + digit_at(&number, place));
        emit(sink, &digit, 1);
        if (place == top && point) emit(sink, ".", 1);
    }
    emit(sink, tail, tail_length);
    if (form->flags & LEFT) emit_many(sink, ' ', form->width - sign);
}

#else

/* This much is left out of programs without a format for floating-point numbers. */
static void print_float(struct sink *sink, struct form *form, double value)
{
    (void)value;
    field(sink, form, "", 0, 0, "(float)", 7);
}

#endif

static int read_number(const char **format, va_list *values)
{
    int number = 0;
    if (**format == '*') {
        ++*format;
        return va_arg(*values, int);
    }
    while (isdigit(**format)) number = 10 * number + *(*format)++ - '0';
    return number;
}

static void print(struct sink *sink, const char *format, va_list given)
{
    va_list values;
    va_copy(values, given);
    for (;;) {
        struct form form = {0, 0, -1, 0};
        const char *text = format;
        int longs = 0, length = 0;
        char one;
        while (*format && *format != '%') format++;
        emit(sink, text, (int)(format - text));
        if (!*format) break;
        text = format++;
        for (int flag; (flag = flag_of(*format)); format++) form.flags |= flag;
        form.width = read_number(&format, &values);
        if (form.width < 0) {
            form.flags |= LEFT;
            form.width = -form.width;
        }
        if (*format == '.') {
            format++;
            form.precision = read_number(&format, &values);
        }
        for (;; format++) {
            if (*format == 'l') longs++;
            else if (*format == 'j') longs = 2;
            else if (*format == 'h') longs--;
            else if (*format == 'L') longs = 9;
            else if (*format != 'z' && *format != 't') break;
        }
        form.kind = *format;
        if (form.kind) format++;
        if (form.kind && is_among(form.kind, "diuxXop")) {
            if (longs > 1) {
                print_whole(sink, &form, va_arg(values, unsigned long long));
            } else {
                int cut = longs == -1 ? 16 : longs == -2 ? 24 : 0;
                unsigned word = va_arg(values, unsigned) << cut;
                int is_signed = form.kind == 'd' || form.kind == 'i';
                print_whole(sink, &form, is_signed ? (unsigned long long)((int)word >> cut) : word >> cut);
            }
            continue;
        }
        if (form.kind && is_among(form.kind, "fFeEgGaA")) {
#ifdef TAPEGRAD_FLOATS
            if (longs == 9) {
                print_float(sink, &form, shortened(va_arg(values, long double)));
                continue;
            }
#endif
            print_float(sink, &form, va_arg(values, double));
            continue;
        }
        if (form.kind == 'n') {
            *va_arg(values, int *) = (int)sink->count;
            continue;
        }
        if (form.kind == 's') {
            text = va_arg(values, const char *);
            if (!text) text = "(null)";
            while (length != form.precision && text[length]) length++;
        } else if (form.kind == 'c') {
            one = (char)va_arg(values, int);
            text = &one;
            length = 1;
        } else {  /* %%, or no conversion: as it stands */
            length = form.kind == '%' ? 1 : (int)(format - text);
            form.width = 0;
        }
        form.flags &= ~ZEROS;
        field(sink, &form, text, 0, 0, text, length);
    }
    va_end(values);
}

static int print_to_file(int file, const char *format, va_list values)
{
    struct sink sink = {0, file, 0, 0};
    print(&sink, format, values);
    return (int)sink.count;
}

static int print_to_text(char *to, size_t size, const char *format, va_list values)
{
    char none;
    struct sink sink = {size ? to : &none, 0, size, 0};
    print(&sink, format, values);
    if (size) to[sink.count < size ? sink.count : size - 1] = 0;
    return (int)sink.count;
}

#define WITH_VALUES(last, call)                                                                          \
    {                                                                                                    \
        va_list values;                                                                                  \
        va_start(values, last);                                                                          \
        int result = call;                                                                               \
        va_end(values);                                                                                  \
        return result;                                                                                   \
    }
#define ENDLESS ((size_t)0x7fffffff)

LIBRARY int printf(const char *format, ...) WITH_VALUES(format, print_to_file(1, format, values))

LIBRARY int fprintf(FILE *file, const char *format, ...)
    WITH_VALUES(format, print_to_file(file->number, format, values))

LIBRARY int sprintf(char *to, const char *format, ...)
    WITH_VALUES(format, print_to_text(to, ENDLESS, format, values))

LIBRARY int snprintf(char *to, size_t size, const char *format, ...)
    WITH_VALUES(format, print_to_text(to, size, format, values))

LIBRARY int vprintf(const char *format, va_list values) { return print_to_file(1, format, values); }

LIBRARY int vfprintf(FILE *file, const char *format, va_list values)
{
    return print_to_file(file->number, format, values);
}

LIBRARY int vsprintf(char *to, const char *format, va_list values)
{
    return print_to_text(to, ENDLESS, format, values);
}

LIBRARY int vsnprintf(char *to, size_t size, const char *format, va_list values)
{
    return print_to_text(to, size, format, values);
}
