/* The calls of MPI that mpi.rs needs, with plain C types. MPI's handles are macros, which Rust
 * cannot use, and each MPI library defines them in its own way. */
#include <mpi.h>

/* The exchange that is under way. There is at most one. */
static MPI_Request request;

/* Each function returns MPI's error code; 0 is success. */

int overtone_mpi_start(int *rank, int *count) {
    int provided;
    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    if (!code) code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (!code) code = MPI_Comm_rank(MPI_COMM_WORLD, rank);
    if (!code) code = MPI_Comm_size(MPI_COMM_WORLD, count);
    return code;
}

/* `received` has n bytes for each process. Both buffers are used until the exchange is done. */
int overtone_mpi_all_gather(const void *sent, void *received, int n) {
    return MPI_Iallgather(sent, n, MPI_BYTE, received, n, MPI_BYTE, MPI_COMM_WORLD, &request);
}

/* Both buffers have n bytes for each process, and are used until the exchange is done. */
int overtone_mpi_all_to_all(const void *sent, void *received, int n) {
    return MPI_Ialltoall(sent, n, MPI_BYTE, received, n, MPI_BYTE, MPI_COMM_WORLD, &request);
}

/* Whether the exchange is done. */
int overtone_mpi_test(int *is_done) {
    return MPI_Test(&request, is_done, MPI_STATUS_IGNORE);
}

int overtone_mpi_end(void) {
    return MPI_Finalize();
}
