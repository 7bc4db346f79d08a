/* Plays an episode of an agent, prints its actions, and makes every wrong call. */
#include "overtone_serve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CHECK(call, code)                                                                          \
    do {                                                                                           \
        int got = (call);                                                                          \
        if (got != (code)) {                                                                       \
            fprintf(stderr, "%s: %d, expected %d: %s\n", #call, got, (code), overtone_last_error()); \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

int main(int argc, char **argv) {
    struct overtone_agent *agent = NULL;
    float observation[64] = {0}, action[64];
    if (argc != 2) return 2;
    CHECK(overtone_open("no such directory", &agent), 1);
    CHECK(overtone_open(NULL, &agent), 2);
    CHECK(overtone_open(argv[1], NULL), 2);
    CHECK(overtone_load((const uint8_t *)"x", 1, (const uint8_t *)"{", 1, &agent), 1);
    CHECK(overtone_begin(NULL, 1, NAN), 2);
    overtone_free(NULL);

    CHECK(overtone_open(argv[1], &agent), 0);
    size_t n = overtone_observation_size(agent), width = overtone_action_size(agent);
    if (n > 64 || width > 64 || overtone_is_discrete(agent)) return 3;
    CHECK(overtone_took(agent, action, width), 2);
    CHECK(overtone_act(agent, observation, n, 0, action, width), 2);
    if (!strstr(overtone_last_error(), "begin")) return 4;
    CHECK(overtone_begin(agent, 1, INFINITY), 2);
    CHECK(overtone_begin(agent, 1, NAN), 0);
    CHECK(overtone_act(agent, observation, n + 1, 0, action, width), 2);
    CHECK(overtone_act(agent, NULL, n, 0, action, width), 2);
    CHECK(overtone_act(agent, observation, n, 0, action, width - 1), 2);
    CHECK(overtone_act(agent, observation, n, NAN, action, width), 2);
    CHECK(overtone_allow(agent, (const uint8_t *)"\1\1\1", 3), 2);
    for (int step = 0; step < 20; step++) {
        for (size_t i = 0; i < n; i++) observation[i] = (float)((step + 3 * (int)i) % 7) / 7;
        CHECK(overtone_act(agent, observation, n, INFINITY, action, width), 2);
        CHECK(overtone_act(agent, observation, n, 0.5f, action, width), 0);
        for (size_t i = 0; i < width; i++) printf("%.9g\n", action[i]);
        CHECK(overtone_took(agent, action, width + 1), 2);
        CHECK(overtone_took(agent, action, width), 0);
    }
    overtone_free(agent);
    return 0;
}
