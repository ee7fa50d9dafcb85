// Events of the aggregation programs, counted per job: index job * 16 + event.

#ifndef GRADPLANE_AGGREGATION_EVENTS_P4
#define GRADPLANE_AGGREGATION_EVENTS_P4

typedef bit<4> event_t;
const event_t EVENT_ACCEPTED = 0;
const event_t EVENT_DUPLICATE = 1;
const event_t EVENT_SUMS = 3;
const event_t EVENT_BAD_SLOT = 8;
const event_t EVENT_BAD_FORMAT = 9;
const event_t EVENT_SPOOFED_PASS = 10;
const event_t EVENT_STATUS = 11;
const event_t EVENT_UNKNOWN_TYPE = 12;
const event_t EVENT_OTHER_EPOCH = 14;
const event_t EVENT_PASSED_DOWN = 15;
#ifdef SHARES_SLOTS
const event_t EVENT_TAKEN = 2;          // passed on, as the slot has another chunk
const event_t EVENT_EVICTED = 4;        // another chunk has been carried away
const event_t EVENT_DIRECT = 5;         // sent again, passed on
const event_t EVENT_FREED = 6;          // sent again, with the slot's content
const event_t EVENT_BROKEN = 7;         // a later cell was not as the first one
const event_t EVENT_NORM = 13;
#else
const event_t EVENT_LATE = 2;
const event_t EVENT_NORM = 4;
const event_t EVENT_STRAGGLER = 5;
const event_t EVENT_NORM_DIFFERS = 6;
const event_t EVENT_BAD_NORM = 7;
const event_t EVENT_ROUND_AHEAD = 13;
#endif

#endif
