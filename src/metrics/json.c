/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Printing JSON. */
#include <math.h>

#include "base/base.h"
#include "base/number.h"
#include "metrics/metrics_priv.h"

void jsonText(str *out, slice text) {
    strAppendByte(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];
        if (byte == '"' || byte == '\\') {
            strAppendFormat(out, "\\%c", byte);
        } else if (byte < 0x20 || byte >= 0x7f) {
            strAppendFormat(out, "\\u%04x", byte);
        } else {
            strAppendByte(out, (char)byte);
        }
    }
    strAppendByte(out, '"');
}

void jsonName(str *out, const char *name) {
    hotCheck(name[0]);
    if (out->len && out->ptr[out->len - 1] != '{') strAppendByte(out, ',');
    strAppendFormat(out, "\"%s\":", name);
}

/* JSON allows fewer forms of numbers than Valkey. */
void jsonNumber(str *out, const char *name, slice text) {
    double number;
    if (!numberParseDouble(text, &number)) number = 0;
    char digits[NUMBER_TEXT_MAX];
    size_t len = numberPrintDouble(digits, number);
    jsonName(out, name);
    bool plain = digits[0] == '-' || (digits[0] >= '0' && digits[0] <= '9');
    strAppendSlice(out, plain ? sliceMake(digits, len) : SLICE("0"));
}

void jsonDecimal(str *out, double number) {
    if (isfinite(number)) {
        bool whole = fabs(number) >= 1000 || number == floor(number);
        strAppendFormat(out, "%.*f", whole ? 0 : 3, number);
    } else {
        strAppendText(out, "null");
    }
}

void jsonString(str *out, const char *name, slice text) {
    jsonName(out, name);
    jsonText(out, text);
}

void jsonFields(str *out, const infoIndex *info, const jsonField *fields, size_t count) {
    hotCheck(count > 0);
    for (size_t i = 0; i < count; i++)
        jsonNumber(out, fields[i].name, infoIndexFind(info, fields[i].info_name));
}
