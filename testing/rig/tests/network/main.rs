//! Switch, offloads, uplinks, AF_XDP, recordings, tested with third-party components. One module
//! per subject.

#[path = "../support/bridged.rs"]
mod bridged;
mod dhcp;
#[allow(unreachable_pub, dead_code, reason = "public for the fuzz target")]
#[path = "../../../../fuzz/src/frame_oracle.rs"]
mod frame_oracle;
#[allow(unreachable_pub, dead_code, reason = "public for the fuzz target")]
#[path = "../../../../fuzz/src/frame_sample.rs"]
mod frame_sample;
mod kernel_path;
mod light_guests;
mod offload_engine;
mod offload_show;
mod offload_switches;
#[allow(unreachable_pub, dead_code, reason = "a module of several test binaries")]
#[path = "../support/packet_tap.rs"]
mod packet_tap;
mod recording;
mod stages;
#[allow(unreachable_pub, dead_code, reason = "a module of several test binaries")]
#[path = "../support/streams.rs"]
mod streams;
#[path = "../support/team_of_two.rs"]
mod team_of_two;
mod uplinks;
mod vlan_stacks;
mod vmq_reaction;
mod xdp_uplinks;
