// A compiler in the place of NVRTC, for tests: `libnvrtc.so.13` that compiles CUDA C++ for the CPU.
//
// The source is changed a little, and compiled by the system's compiler after `device.h` to a
// library, whose path is returned as PTX (cuda.cpp loads it). `CUDA_KERNELS=directory` keeps these
// libraries, named by a hash of their source.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#define API extern "C" int
struct Program { std::string source, image, log; };
enum { SUCCESS = 0, COMPILATION = 6 };

static std::string changed(std::string text) {
    using std::regex; using std::regex_replace;
    text = regex_replace(text, regex("#include <[^>]*>"), "");
    text = regex_replace(text, regex("__(launch_bounds|cluster_dims)__ *\\([^)]*\\)"), "");
    // Dynamic shared memory.
    text = regex_replace(text, regex("extern __shared__ (?:__align__\\([0-9]+\\) )?(\\w+) (\\w+)\\[\\];"),
                         "$1* const $2 = ($1*)emulated_block->shared;");
    // Atomic additions, the only instructions in PTX that cubecl writes for this program.
    text = regex_replace(text, regex("asm volatile\\(\"atom\\.relaxed\\.add[^\"]*\" : \"=\\w\"\\((\\w+)\\) : \"l\"\\((\\w+)\\), \"\\w\"\\((\\w+)\\) \\);"),
                         "$1 = add_atomically($2, $3);");
    std::string end;
    regex entry("__global__\\s+void\\s+(\\w+)\\s*\\(");
    for (std::sregex_iterator i(text.begin(), text.end(), entry), none; i != none; ++i) end += "EMULATED_ENTRY(" + (*i)[1].str() + ")\n";
    bool waits = text.find("sync") != text.npos || text.find("\"host.h\"") != text.npos;
    return text + "\n" + end + "EMULATED_WAITS(" + (waits ? "true" : "false") + ")\n";
}

static std::string content(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

static std::string directory() {
    const char* named = getenv("CUDA_KERNELS");
    std::string path = named ? named : "/tmp/emulated-kernels-" + std::to_string(getuid());
    mkdir(path.c_str(), 0700);
    return path;
}

API nvrtcCreateProgram(Program** program, const char* source, const char*, int, const char**, const char**) {
    *program = new Program{source, "", ""};
    return SUCCESS;
}
API nvrtcCompileProgram(Program* program, int n_options, const char** options) {
    std::string include, text = changed(program->source), key = text;
    for (int i = 0; i < n_options; i++)
        if (!strncmp(options[i], "--include-path=", 15)) {
            std::string path = options[i] + 15;
            include += " -I'" + path + "'";
            key += content(path + "/device.h") + content(path + "/host.h") + content(path + "/../block.h");
        }
    uint64_t hash = 14695981039346656037ull;
    for (unsigned char c : key) hash = (hash ^ c) * 1099511628211ull;
    char name[32];
    snprintf(name, sizeof name, "/%016lx", (unsigned long)hash);
    std::string stem = directory() + name, own = stem + "." + std::to_string(getpid());
    std::string library = stem + ".so";
    program->image = "library:" + library;
    if (!access(library.c_str(), R_OK)) return SUCCESS;
    std::ofstream(own + ".cpp") << text;
    std::string command = "c++ -std=c++17 -O1 -w -fPIC -shared -fno-builtin -fno-strict-aliasing" + include +
                          " -include device.h -o " + own + ".so " + own + ".cpp -lm > " + own + ".log 2>&1";
    bool failed = system(command.c_str()) != 0;
    program->log = content(own + ".log");
    rename((own + ".cpp").c_str(), (stem + ".cpp").c_str());
    unlink((own + ".log").c_str());
    return failed || rename((own + ".so").c_str(), library.c_str()) ? COMPILATION : SUCCESS;
}
API nvrtcGetPTXSize(Program* program, size_t* size) { *size = program->image.size() + 1; return SUCCESS; }
API nvrtcGetPTX(Program* program, char* to) { strcpy(to, program->image.c_str()); return SUCCESS; }
API nvrtcGetProgramLogSize(Program* program, size_t* size) { *size = program->log.size() + 1; return SUCCESS; }
API nvrtcGetProgramLog(Program* program, char* to) { strcpy(to, program->log.c_str()); return SUCCESS; }
API nvrtcDestroyProgram(Program** program) { delete *program; *program = nullptr; return SUCCESS; }
API nvrtcVersion(int* major, int* minor) { *major = 13; *minor = 0; return SUCCESS; }
extern "C" const char* nvrtcGetErrorString(int code) { return code ? "the compiler of the host failed" : "success"; }
