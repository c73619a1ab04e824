# The plugin, for `make AMP=1` in a Darknet tree that patches/apply.sh has made: Darknet's Makefile includes
# this file and finds the plugin in AMP_DIR. The CMake build compiles the same objects; CMakeLists.txt
# says why the plugin has its own flags.

# AlexeyAB's Makefile compiles C files as C++ with USE_CPP=1; the plugin is C.
AMP_CC = $(if $(filter 1, $(USE_CPP)), gcc, $(CC))

AMP_SOURCES = $(wildcard $(addprefix $(AMP_DIR)/, files/*.c image/*.c layers/*.c amp/*.c comm/*.c host/*/*.c \
    commands/*.c commands/*/*.c))
ifeq ($(GPU), 1)
ifneq ($(CUDNN), 1)
$(error AMP=1 with GPU=1 needs cuDNN: add CUDNN=1)
endif
AMP_SOURCES += $(wildcard $(AMP_DIR)/backend/cuda/*.c $(AMP_DIR)/comm/nccl/*.c)
AMP_KERNELS = $(wildcard $(AMP_DIR)/backend/cuda/*.cu)
LDFLAGS += -ldl
endif

# AMP_MPI=1: several ranks, started by mpirun.
AMP_MPICC ?= mpicc
ifeq ($(AMP_MPI), 1)
ifeq (, $(shell command -v $(AMP_MPICC)))
$(error $(AMP_MPICC) was not found: install libopenmpi-dev or libmpich-dev, or set AMP_MPICC=)
endif
AMP_SOURCES += $(AMP_DIR)/comm/mpi/mpi.c
AMP_MPI_CFLAGS := $(shell $(AMP_MPICC) --showme:compile 2> /dev/null \
    || $(AMP_MPICC) -compile_info | cut -d' ' -f2-)
LDFLAGS += $(shell $(AMP_MPICC) --showme:link 2> /dev/null || $(AMP_MPICC) -link_info | cut -d' ' -f2-)
else
AMP_SOURCES += $(AMP_DIR)/comm/none/none.c
endif

# The CPU backend needs oneDNN. AMP_CPU=1 and =0 build with and without it; the default is 1 if oneDNN is
# installed.
AMP_PROBE = \#include <dnnl.h>\nint main(void) { return !dnnl_version(); }\n
AMP_CPU ?= $(shell printf '$(AMP_PROBE)' | $(AMP_CC) -x c - -ldnnl -o /dev/null 2> /dev/null \
    && echo 1 || echo 0)
AMP_CPU := $(AMP_CPU)
ifeq ($(AMP_CPU), 1)
AMP_SOURCES += $(wildcard $(AMP_DIR)/backend/cpu/*.c)
LDFLAGS += -ldnnl
else ifeq ($(GPU), 1)
$(info oneDNN was not found: building without the CPU backend)
AMP_WITHOUT_CPU = -DAMP_NO_CPU_BACKEND
else
$(error oneDNN was not found: install Debian's package libdnnl-dev, or build for a GPU with GPU=1 CUDNN=1)
endif

# libjpeg-turbo decodes JPEGs if it is installed; AMP_JPEG=1 requires it, AMP_JPEG=0 builds without it.
AMP_PROBE_JPEG = \#include <stdio.h>\n\#include <jpeglib.h>\n\
int main(void) { return LIBJPEG_TURBO_VERSION_NUMBER < 1; }\n
AMP_JPEG ?= $(shell printf '$(AMP_PROBE_JPEG)' | $(AMP_CC) -x c - -ljpeg -o /dev/null 2> /dev/null \
    && echo 1 || echo 0)
AMP_JPEG := $(AMP_JPEG)
ifeq ($(AMP_JPEG), 1)
AMP_WITH_JPEG = -DAMP_JPEG
LDFLAGS += -ljpeg
endif
OBJ += $(patsubst $(AMP_DIR)/%.c, amp/%.o, $(AMP_SOURCES)) \
    $(patsubst $(AMP_DIR)/%.cu, amp/%.o, $(AMP_KERNELS))

COMMON += -DAMP -I$(AMP_DIR)/include/
LDFLAGS += -fopenmp

AMP_OPTS = -O3
AMP_CFLAGS = -std=c11 $(AMP_OPTS) -Wall -fPIC -fvisibility=hidden -fopenmp -D_POSIX_C_SOURCE=200809L -Isrc/ \
    -I$(AMP_DIR) $(AMP_WITHOUT_CPU) $(AMP_WITH_JPEG) $(AMP_MPI_CFLAGS)
AMP_MACHINE := $(shell $(AMP_CC) -dumpmachine)
ifneq (, $(findstring x86_64, $(AMP_MACHINE)))
$(OBJDIR)amp/%_avx2.o: AMP_CFLAGS += -mavx2 -mfma -mf16c
$(OBJDIR)amp/%_avx512.o: AMP_CFLAGS += -march=x86-64-v4 -mprefer-vector-width=512
endif

# With -Ofast gcc links start-up code that sets flush-to-zero. The program keeps it, as in the original; in
# the library it would set flush-to-zero in any program that uses the library.
ifneq ($(SLIB)$(LIBNAMESO),)
$(SLIB) $(LIBNAMESO): private CFLAGS := $(filter-out -Ofast, $(CFLAGS))
endif

AMP_PAGE = $(AMP_DIR)/commands/report/report.html
$(OBJDIR)amp/commands/report/report_html.o: AMP_CFLAGS += -DAMP_REPORT_PAGE='"$(AMP_PAGE)"'

AMP_HEADERS = $(wildcard $(addprefix $(AMP_DIR)/, *.mk include/*.h* */*.h */*/*.h */*/*.cuh */*/*.html))

$(OBJDIR)amp/%.o: $(AMP_DIR)/%.c $(AMP_HEADERS) $(DEPS)
	@mkdir -p $(@D)
	$(AMP_CC) $(COMMON) $(AMP_CFLAGS) -c $< -o $@

$(OBJDIR)amp/%.o: $(AMP_DIR)/%.cu $(AMP_HEADERS) $(DEPS)
	@mkdir -p $(@D)
	$(NVCC) $(ARCH) $(COMMON) -std=c++17 $(AMP_OPTS) -I$(AMP_DIR) \
	    --compiler-options "-Wall -fPIC -fvisibility=hidden" -c $< -o $@
