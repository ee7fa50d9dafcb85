#ifndef EGRESS
control Egress(EGRESS_ARGS) { apply { } }
#endif
Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
