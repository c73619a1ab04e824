# Several ranks on this machine, started by mpirun, of darknet-mpi or of RANKS_PROGRAM. Include
# tiny_training.bash first.

export OMP_NUM_THREADS=1
RANKS_DARKNET=$BUILD_DIR/bin/${RANKS_PROGRAM:-darknet-mpi}
[ -x "$RANKS_DARKNET" ] || RANKS_DARKNET=${RANKS_DARKNET%-mpi} # of a build with DARKNET_AMP_MPI=ON
command -v mpirun > /dev/null || skip "mpirun is not installed"
ldd "$RANKS_DARKNET" | grep -q libmpi || skip "darknet-mpi was not built, since CMake found no MPI"
case "${SANITIZERS:-}" in
*thread*) skip "MPI's own threads are not instrumented" ;;
esac
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" # MPI's own

mpirun_options=$(mpirun --version 2>&1 | grep -q 'Open MPI' && echo --oversubscribe --bind-to none)
[ "$(id -u)" != 0 ] || [ -z "$mpirun_options" ] || mpirun_options="$mpirun_options --allow-run-as-root"

# ranks <number> <arguments of darknet...>; 0: without MPI
ranks() {
    local number=$1
    shift
    if [ "$number" = 0 ]; then "$RANKS_DARKNET" "$@"
    else mpirun $mpirun_options -np $number "$RANKS_DARKNET" "$@"; fi
}
