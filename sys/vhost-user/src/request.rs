//! Request codes of the vhost-user protocol.

macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $wire:literal;)*) => {
        /// Requests of a front-end that this back-end implements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Request {
            $($(#[$doc])* $name = $code,)*
        }

        impl Request {
            /// Implemented requests in ascending order of their codes.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the request with this code; `None` if it is not implemented.
            pub const fn from_code(code: u32) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Returns the name in the specification, without `VHOST_USER_`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $wire,)*
                }
            }
        }
    };
}

requests! {
    /// Returns the offered virtio features.
    GetFeatures = 1, "GET_FEATURES";
    /// Sets the negotiated virtio features.
    SetFeatures = 2, "SET_FEATURES";
    /// Starts a session of the front-end.
    SetOwner = 3, "SET_OWNER";
    /// Disables all rings (deprecated by the specification).
    ResetOwner = 4, "RESET_OWNER";
    /// Sets all regions of the VM's memory.
    SetMemTable = 5, "SET_MEM_TABLE";
    /// Sets the log of written pages, for migration.
    SetLogBase = 6, "SET_LOG_BASE";
    /// Sets the eventfd that signals changes of the log.
    SetLogFd = 7, "SET_LOG_FD";
    /// Sets the number of a ring's entries.
    SetVringNum = 8, "SET_VRING_NUM";
    /// Sets the addresses of a ring's parts.
    SetVringAddr = 9, "SET_VRING_ADDR";
    /// Sets a ring's next available index.
    SetVringBase = 10, "SET_VRING_BASE";
    /// Stops a ring and returns its position.
    GetVringBase = 11, "GET_VRING_BASE";
    /// Sets the eventfd of the driver's notifications.
    SetVringKick = 12, "SET_VRING_KICK";
    /// Sets the eventfd of notifications to the driver.
    SetVringCall = 13, "SET_VRING_CALL";
    /// Sets the eventfd that signals a faulty ring.
    SetVringErr = 14, "SET_VRING_ERR";
    /// Returns the offered protocol features.
    GetProtocolFeatures = 15, "GET_PROTOCOL_FEATURES";
    /// Sets the negotiated protocol features.
    SetProtocolFeatures = 16, "SET_PROTOCOL_FEATURES";
    /// Returns the maximum number of queues or queue pairs.
    GetQueueNum = 17, "GET_QUEUE_NUM";
    /// Enables or disables a ring.
    SetVringEnable = 18, "SET_VRING_ENABLE";
    /// Announces the VM's MAC address in the network (RARP).
    SendRarp = 19, "SEND_RARP";
    /// Sets the MTU that the guest will use.
    NetSetMtu = 20, "NET_SET_MTU";
    /// Sets the channel for requests of the back-end.
    SetBackendReqFd = 21, "SET_BACKEND_REQ_FD";
    /// Reads from the device's configuration space.
    GetConfig = 24, "GET_CONFIG";
    /// Writes to the device's configuration space.
    SetConfig = 25, "SET_CONFIG";
    /// Creates an in-flight record, which the front-end keeps.
    GetInflightFd = 31, "GET_INFLIGHT_FD";
    /// Sets the in-flight record, which may be that of an earlier connection.
    SetInflightFd = 32, "SET_INFLIGHT_FD";
    /// Resets the device.
    ResetDevice = 34, "RESET_DEVICE";
    /// Returns the maximum number of memory regions that can be added.
    GetMaxMemSlots = 36, "GET_MAX_MEM_SLOTS";
    /// Adds a memory region.
    AddMemReg = 37, "ADD_MEM_REG";
    /// Removes a memory region.
    RemMemReg = 38, "REM_MEM_REG";
    /// Sets the virtio device status.
    SetStatus = 39, "SET_STATUS";
    /// Returns the virtio device status.
    GetStatus = 40, "GET_STATUS";
}

impl core::fmt::Display for Request {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}
