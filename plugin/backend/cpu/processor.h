/* How wide the vectors of this backend's own loops may be: asked once, for rows.c and convert.c alike. */
#ifndef AMP_BACKEND_CPU_PROCESSOR_H
#define AMP_BACKEND_CPU_PROCESSOR_H

/* What every x86-64 has; AVX2 with FMA and F16C; x86-64-v4 (AVX-512 F, BW, CD, DQ, VL). */
typedef enum amp_cpu_width { AMP_CPU_BASE, AMP_CPU_AVX2, AMP_CPU_AVX512 } amp_cpu_width;

/* The widest that this processor has, the system saves, and oneDNN's variable DNNL_MAX_CPU_ISA leaves. */
amp_cpu_width amp_cpu_widest(void);

#endif
