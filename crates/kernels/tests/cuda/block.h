// The interface between a kernel that was compiled for the CPU and the program that runs it.
#pragma once

namespace emulated {
struct Place { unsigned x, y, z; };

// The running block. Threads of a block are fibers of one thread of the host.
struct Block {
    Place grid, size;       // blocks in the grid, threads in the block
    Place at, thread;       // index of the running block, and of the running thread in it
    unsigned rank;          // linear index of the running thread
    char* shared;           // dynamic shared memory
    bool early;             // the order of threads and copies, see threads.cpp
    struct Warp {
        unsigned present;   // lanes that took part in the last collective operation
        unsigned turn;      // number of collective operations so far
        char slots[2][32][64]; // values that lanes exchange, by parity of the turn
    } warps[32];
    // Asynchronous copies that a thread waits for, a ring; `group` is the open group.
    struct Copies {
        unsigned first, last, group;
        struct Copy { void* to; const void* from; bool inside; unsigned group; } ring[64];
    } copies[1024];
    void (*wait)(bool whole_block); // returns when the warp, or the block, has arrived
};

// One thread of a kernel.
typedef void (*Run)(void** parameters);

// Runs all blocks of a launch.
void run_blocks(Block& block, Run run, void** parameters);
}
