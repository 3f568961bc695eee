//! Path and direction of the traffic in a case.

/// Path of a guest's frames.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Path {
    Switch,
    Vf,
}

/// Direction of the traffic, as seen by the guest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Direction {
    Sends,
    Receives,
}
