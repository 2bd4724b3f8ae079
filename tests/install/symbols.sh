#!/usr/bin/env bash
# The static library, built without threads, may ask only for what a small C library has, and for the heap only
# in allocate.c, for files only in file_posix.c: it never prints, exits or aborts. symbols.sh LIBRARY [nofiles]
set -euo pipefail
library=$1

# Memory and text; the environment (MICA_ISA); mathematics. Not what assert() calls: a release has no assertions.
allowed='mem(cpy|move|set|cmp|chr)|str(len|cmp|ncmp|chr|rchr|cspn|str)|v?snprintf|getenv'
allowed+='|(sin|cos|tan|exp|exp2|log|log2|log1p|expm1|pow|sqrt|tanh|erf|erfc|fabs|floor|ceil|trunc|round|rint'
allowed+='|nearbyint|nextafter|fmin|fmax|fmod|fma|frexp|ldexp|scalbn|hypot|copysign|lrint|llrint|lround|llround|sincos)f?'
# Files, in one source file of src/io; zlib and libjpeg, where gzip, PNG and JPEG are read; numbers in text, in another.
files='open(64)?|(open|close)dir|readdir(64)?|close|pread(64)?|write|fsync|[fl]?stat(64)?|flock|readlink|fchmod|fchown|rename|unlink|__errno_location|(__xpg_)?strerror_r|mmap(64)?|munmap|madvise|sysconf'
zlib='inflate(Init2?_|Reset|End)?|crc32'
jpeg='jpeg_[A-Za-z_]+|_?setjmp|longjmp'
numbers='strtod|localeconv'
# Nothing else anywhere.
tables=none
if [ "${2:-}" = nofiles ]; then
    files=none zlib=none jpeg=none
fi
heap='malloc|calloc|realloc|free|aligned_alloc|posix_memalign'
[ "${2:-}" = nofiles ] || heap+='|madvise' # a wish for huge pages

# "file.c.o symbol" for every symbol that no file of the library defines.
undefined() {
    nm "$library" | awk '
        /:$/ { file = substr($1, 1, length($1) - 1); next }
        NF == 2 && $1 == "U" { wanted[file " " $2] = $2; next }
        NF == 3 && $2 ~ /[A-TV-Z]/ { defined[$3] = 1 }
        END { for (use in wanted) if (!(wanted[use] in defined)) print use }' | sort
}

bad=$(undefined | grep -vE " ($allowed|_GLOBAL_OFFSET_TABLE_|__stack_chk_fail)$" |
    grep -vE "^(allocate\.c\.o ($heap)|file_posix\.c\.o ($files)|(gzip|png)\.c\.o ($zlib)|jpeg\.c\.o ($jpeg)|number\.c\.o ($numbers)|$tables)$" || true)
if [ -n "$bad" ]; then
    echo "not allowed:"
    echo "$bad"
    exit 1
fi
