//! What is known of a device's link.

/// Speed and duplex, as far as the driver knows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkSpeed {
    /// Megabits per second, more than 0; `None` if unknown, as it is of most devices
    /// without carrier.
    pub mbps: Option<u32>,
    /// Whether both ends may send at a time; `None` if unknown.
    pub full_duplex: Option<bool>,
}

/// A device's link as it is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkFacts {
    /// The device is set up and has a carrier.
    pub up: bool,
    /// How fast it is.
    pub speed: LinkSpeed,
}
