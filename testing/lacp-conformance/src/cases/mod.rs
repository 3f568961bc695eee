//! The test cases. Clauses refer to IEEE 802.1AX-2014 unless another year is given; 802.1AX-2020
//! has the same state machines under different numbers.

mod case;
mod flood;
mod format;
mod link;
mod loopback;
mod malformed;
mod marker;
mod mux;
mod passive;
mod periodic;
mod rate;
mod receive;
mod selection;
mod traffic;
mod version;

pub(crate) use case::Case;

/// Returns all cases in the order in which they run.
pub(crate) fn all() -> impl Iterator<Item = &'static Case> {
    [
        selection::CASES,
        format::CASES,
        periodic::CASES,
        rate::CASES,
        passive::CASES,
        receive::CASES,
        mux::CASES,
        version::CASES,
        malformed::CASES,
        marker::CASES,
        loopback::CASES,
        link::CASES,
        flood::CASES,
        traffic::CASES,
    ]
    .into_iter()
    .flatten()
}
