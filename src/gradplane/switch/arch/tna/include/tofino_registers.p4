// Registers and the programs of their stateful ALUs.

#ifndef _GRADPLANE_TOFINO_REGISTERS_P4_
#define _GRADPLANE_TOFINO_REGISTERS_P4_

#include "tofino_numbers.p4"

extern Register<T, I> {
    Register(bit<32> size);
    Register(bit<32> size, T initial_value);
    T read(in I index);
    T write(in I index, in T value);
#if __TARGET_TOFINO__ == 2
    void clear(in T value, @optional in T busy);
#endif
}

// One cell for each entry of a table.
extern DirectRegister<T> {
    DirectRegister();
    DirectRegister(T initial_value);
    T read();
    T write(in T value);
#if __TARGET_TOFINO__ == 2
    void clear(in T value, @optional in T busy);
#endif
}

// A number that the control plane sets, for the body of a register action.
extern RegisterParam<T> {
    RegisterParam(T initial_value);
    T read();
}

extern MathUnit<T> {
    MathUnit(bool invert, int<2> shift, int<6> scale,
             tuple<bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>,
                   bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>> data);
    MathUnit(MathOp_t op, int factor);
    MathUnit(MathOp_t op, int A, int B);
    T execute(in T x);
}

// `execute` reads the cell, runs `apply` on it and writes it back; it returns `apply`'s first
// result. Only a body may call the helpers: `predicate` gives one bit for each combination of its
// conditions, `min8` and its like the least or greatest of the cell's parts that the mask chooses.

#if __TARGET_TOFINO__ == 2

#define STATEFUL_HELPERS_OF(U_OR_NOTHING) \
    U address U_OR_NOTHING (@optional bit<1> subword); \
    U predicate U_OR_NOTHING (@optional in bool cmp0, @optional in bool cmp1, \
                              @optional in bool cmp2, @optional in bool cmp3); \
    bit<8> min8<V>(in V val, in bit<16> mask, @optional out bit<4> index); \
    bit<8> max8<V>(in V val, in bit<16> mask, @optional out bit<4> index); \
    bit<16> min16<V>(in V val, in bit<8> mask, @optional out bit<3> index); \
    bit<16> max16<V>(in V val, in bit<8> mask, @optional out bit<3> index);
#define STATEFUL_HELPERS STATEFUL_HELPERS_OF()
#define STATEFUL_HELPERS_U STATEFUL_HELPERS_OF(<U>)

@noWarn("unused")
extern RegisterAction<T, I, U> {
    RegisterAction(Register<_, _> reg);
    U execute(@optional in I index, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    U execute_log(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    U enqueue(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    U dequeue(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    U push(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    U pop(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    void sweep(@optional in U busy);
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop, sweep)
    abstract void apply(inout T value, @optional out U rv1, @optional out U rv2,
                        @optional out U rv3, @optional out U rv4);
    @synchronous(enqueue, push)
    @optional abstract void overflow(@optional inout T value, @optional out U rv1,
                                     @optional out U rv2, @optional out U rv3,
                                     @optional out U rv4);
    @synchronous(dequeue, pop)
    @optional abstract void underflow(@optional inout T value, @optional out U rv1,
                                      @optional out U rv2, @optional out U rv3,
                                      @optional out U rv4);
    STATEFUL_HELPERS
}

#define REGISTER_ACTION_OF(NAME, TYPES, OUTS, RESULTS) \
@noWarn("unused") \
extern NAME<T, I, TYPES> { \
    NAME(Register<_, _> reg); \
    U1 execute(in I index, OUTS); \
    U1 execute_log(OUTS); \
    U1 enqueue(OUTS); \
    U1 dequeue(OUTS); \
    U1 push(OUTS); \
    U1 pop(OUTS); \
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop) \
    abstract void apply(inout T value, RESULTS); \
    @synchronous(enqueue, push) \
    @optional abstract void overflow(@optional inout T value, RESULTS); \
    @synchronous(dequeue, pop) \
    @optional abstract void underflow(@optional inout T value, RESULTS); \
    STATEFUL_HELPERS_U \
}

// Like RegisterAction; an action of a table with dleft_hash keys calls it. digest is a hash of these
// keys, learn says whether no other way of the register has it or has room before this one.
extern LearnAction<T, I, D, U> {
    LearnAction(Register<T, I> reg);
    U execute(in I index, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    @synchronous(execute)
    abstract void apply(inout T value, in D digest, in bool learn, @optional out U rv1,
                        @optional out U rv2, @optional out U rv3, @optional out U rv4);
    STATEFUL_HELPERS
}

#define LEARN_ACTION_OF(NAME, TYPES, OUTS, RESULTS) \
extern NAME<T, I, D, TYPES> { \
    NAME(Register<T, I> reg); \
    U1 execute(in I index, OUTS); \
    @synchronous(execute) \
    abstract void apply(inout T value, in D digest, in bool learn, RESULTS); \
    STATEFUL_HELPERS_U \
}

#define AND ,
LEARN_ACTION_OF(LearnAction2, U1 AND U2, out U2 rv2, out U1 rv1 AND out U2 rv2)
LEARN_ACTION_OF(LearnAction3, U1 AND U2 AND U3, out U2 rv2 AND out U3 rv3,
                out U1 rv1 AND out U2 rv2 AND out U3 rv3)
LEARN_ACTION_OF(LearnAction4, U1 AND U2 AND U3 AND U4,
                out U2 rv2 AND out U3 rv3 AND out U4 rv4,
                out U1 rv1 AND out U2 rv2 AND out U3 rv3 AND out U4 rv4)
REGISTER_ACTION_OF(RegisterAction2, U1 AND U2, out U2 rv2, out U1 rv1 AND out U2 rv2)
REGISTER_ACTION_OF(RegisterAction3, U1 AND U2 AND U3, out U2 rv2 AND out U3 rv3,
                   out U1 rv1 AND out U2 rv2 AND out U3 rv3)
REGISTER_ACTION_OF(RegisterAction4, U1 AND U2 AND U3 AND U4,
                   out U2 rv2 AND out U3 rv3 AND out U4 rv4,
                   out U1 rv1 AND out U2 rv2 AND out U3 rv3 AND out U4 rv4)

extern DirectRegisterAction<T, U> {
    DirectRegisterAction(DirectRegister<T> reg);
    U execute(@optional out U rv2, @optional out U rv3, @optional out U rv4);
    @synchronous(execute)
    abstract void apply(inout T value, @optional out U rv1, @optional out U rv2,
                        @optional out U rv3, @optional out U rv4);
    STATEFUL_HELPERS
}

#define DIRECT_REGISTER_ACTION_OF(NAME, TYPES, OUTS, RESULTS) \
extern NAME<T, TYPES> { \
    NAME(DirectRegister<T> reg); \
    U1 execute(OUTS); \
    @synchronous(execute) \
    abstract void apply(inout T value, RESULTS); \
    STATEFUL_HELPERS_U \
}

DIRECT_REGISTER_ACTION_OF(DirectRegisterAction2, U1 AND U2, out U2 rv2,
                          out U1 rv1 AND out U2 rv2)
DIRECT_REGISTER_ACTION_OF(DirectRegisterAction3, U1 AND U2 AND U3, out U2 rv2 AND out U3 rv3,
                          out U1 rv1 AND out U2 rv2 AND out U3 rv3)
DIRECT_REGISTER_ACTION_OF(DirectRegisterAction4, U1 AND U2 AND U3 AND U4,
                          out U2 rv2 AND out U3 rv3 AND out U4 rv4,
                          out U1 rv1 AND out U2 rv2 AND out U3 rv3 AND out U4 rv4)

// Like RegisterAction, on a cell of 128 bits; postmod is added to the result.
#define MINMAX_HELPERS(U_OR_NOTHING, POSTMOD) \
    U address U_OR_NOTHING (@optional bit<1> subword); \
    U predicate U_OR_NOTHING (@optional in bool cmp0, @optional in bool cmp1, \
                              @optional in bool cmp2, @optional in bool cmp3); \
    bit<8> min8(in bit<128> val, in bit<16> mask, @optional out bit<4> index, \
                @optional in POSTMOD postmod); \
    bit<8> max8(in bit<128> val, in bit<16> mask, @optional out bit<4> index, \
                @optional in POSTMOD postmod); \
    bit<16> min16(in bit<128> val, in bit<8> mask, @optional out bit<3> index, \
                  @optional in POSTMOD postmod); \
    bit<16> max16(in bit<128> val, in bit<8> mask, @optional out bit<3> index, \
                  @optional in POSTMOD postmod);

@noWarn("unused")
extern MinMaxAction<T, I, U> {
    MinMaxAction(Register<T, _> reg);
    U execute(@optional in I index, @optional out U rv2, @optional out U rv3, @optional out U rv4);
    @synchronous(execute)
    abstract void apply(inout bit<128> value, @optional out U rv1, @optional out U rv2,
                        @optional out U rv3, @optional out U rv4);
    MINMAX_HELPERS(, int<8>)
}

#define MINMAX_ACTION_OF(NAME, TYPES, OUTS, RESULTS) \
extern NAME<T, I, TYPES> { \
    NAME(Register<T, _> reg); \
    U1 execute(@optional in I index, OUTS); \
    @synchronous(execute) \
    abstract void apply(inout bit<128> value, RESULTS); \
    MINMAX_HELPERS(<U>, int<9>) \
}

MINMAX_ACTION_OF(MinMaxAction2, U1 AND U2, out U2 rv2, out U1 rv1 AND out U2 rv2)
MINMAX_ACTION_OF(MinMaxAction3, U1 AND U2 AND U3, out U2 rv2 AND out U3 rv3,
                 out U1 rv1 AND out U2 rv2 AND out U3 rv3)
MINMAX_ACTION_OF(MinMaxAction4, U1 AND U2 AND U3 AND U4,
                 out U2 rv2 AND out U3 rv3 AND out U4 rv4,
                 out U1 rv1 AND out U2 rv2 AND out U3 rv3 AND out U4 rv4)
#undef AND

#else

@noWarn("unused")
extern RegisterAction<T, I, U> {
    RegisterAction(Register<_, _> reg);
    U execute(in I index);
    U execute_log();            // at an index of its own, which counts up
    @synchronous(execute, execute_log)
    abstract void apply(inout T value, @optional out U rv);
    U predicate(@optional in bool cmplo, @optional in bool cmphi);
}

extern DirectRegisterAction<T, U> {
    DirectRegisterAction(DirectRegister<T> reg);
    U execute();
    @synchronous(execute)
    abstract void apply(inout T value, @optional out U rv);
    U predicate(@optional in bool cmplo, @optional in bool cmphi);
}

#endif

// -- action selectors, which may have a register of their members' states -----------------------

extern ActionSelector {
    ActionSelector(ActionProfile action_profile, Hash<_> hash, SelectorMode_t mode,
                   bit<32> max_group_size, bit<32> num_groups);
    ActionSelector(ActionProfile action_profile, Hash<_> hash, SelectorMode_t mode,
                   Register<bit<1>, _> reg, bit<32> max_group_size, bit<32> num_groups);
    ActionSelector(bit<32> size, Hash<_> hash, SelectorMode_t mode);
    ActionSelector(bit<32> size, Hash<_> hash, SelectorMode_t mode, Register<bit<1>, _> reg);
}

extern SelectorAction {
    SelectorAction(ActionSelector sel);
    bit<1> execute(@optional in bit<32> index);
    @synchronous(execute)
    abstract void apply(inout bit<1> value, @optional out bit<1> rv);
}

#endif
