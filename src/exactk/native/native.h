/* What the C files share: how functions are built and exported. */
#ifndef EXACTK_NATIVE_H
#define EXACTK_NATIVE_H

#ifdef __FAST_MATH__
#error "sums that are meant to round would not: without -ffast-math, or NumPy does the work"
#endif

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && \
    __GNUC__ >= 12
/* One binary for every x86-64 machine: the loader picks the version the processor can run. */
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif

/* A helper that stayed a function of its own would be built for the oldest processor only. */
#if defined(__GNUC__)
#define ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define ALWAYS_INLINE inline
#endif

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

#endif
