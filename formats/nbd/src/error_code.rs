//! Error codes of replies (NBD specification, section "Error values").

use core::fmt;

/// Error code of a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NbdError {
    /// `NBD_EPERM`: operation not permitted, such as a write to a read-only export.
    Perm,
    /// `NBD_EIO`: I/O error of the disk.
    Io,
    /// `NBD_ENOMEM`: out of memory.
    Nomem,
    /// `NBD_EINVAL`: invalid request.
    Inval,
    /// `NBD_ENOSPC`: no space left, or a write beyond the end of the export.
    Nospc,
    /// `NBD_EOVERFLOW`: the reply would be too large for the requested reply format.
    Overflow,
    /// `NBD_ENOTSUP`: zeroing would not be faster than a write, or is not supported.
    Notsup,
    /// `NBD_ESHUTDOWN`: the server is shutting down.
    Shutdown,
}

impl NbdError {
    /// Every error code, in ascending numeric order.
    pub const ALL: [Self; 8] = [
        Self::Perm,
        Self::Io,
        Self::Nomem,
        Self::Inval,
        Self::Nospc,
        Self::Overflow,
        Self::Notsup,
        Self::Shutdown,
    ];

    /// Returns the value of the error field in replies.
    pub const fn code(self) -> u32 {
        match self {
            Self::Perm => 1,
            Self::Io => 5,
            Self::Nomem => 12,
            Self::Inval => 22,
            Self::Nospc => 28,
            Self::Overflow => 75,
            Self::Notsup => 95,
            Self::Shutdown => 108,
        }
    }

    /// Returns the error code for the value of an error field. Unknown values map to
    /// [`NbdError::Io`].
    pub fn from_code(code: u32) -> Self {
        Self::ALL.into_iter().find(|error| error.code() == code).unwrap_or(Self::Io)
    }

    /// Returns the error code for an error number of Linux (`errno.h`). File size limits and quotas
    /// map to `NBD_ENOSPC` (section "Error values"); a read-only file system and missing
    /// permissions map to `NBD_EPERM`; other errors map to `NBD_EIO`.
    pub const fn from_errno(errno: i32) -> Self {
        match errno {
            // EPERM, EACCES, EROFS.
            1 | 13 | 30 => Self::Perm,
            // ENOMEM.
            12 => Self::Nomem,
            // EINVAL.
            22 => Self::Inval,
            // EFBIG, ENOSPC, EDQUOT.
            27 | 28 | 122 => Self::Nospc,
            // EOVERFLOW.
            75 => Self::Overflow,
            // EOPNOTSUPP, identical to ENOTSUP on Linux.
            95 => Self::Notsup,
            // ESHUTDOWN.
            108 => Self::Shutdown,
            _ => Self::Io,
        }
    }
}

impl fmt::Display for NbdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Perm => "operation not permitted",
            Self::Io => "input/output error",
            Self::Nomem => "cannot allocate memory",
            Self::Inval => "invalid argument",
            Self::Nospc => "no space left on device",
            Self::Overflow => "value too large",
            Self::Notsup => "operation not supported",
            Self::Shutdown => "the server is being shut down",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_specification() {
        let codes = NbdError::ALL.map(NbdError::code);
        assert_eq!(codes, [1, 5, 12, 22, 28, 75, 95, 108]);
    }

    #[test]
    fn errno_values_map_to_nbd_errors() {
        for error in NbdError::ALL {
            assert_eq!(NbdError::from_errno(error.code().try_into().unwrap()), error);
        }
        for (errno, expected) in [
            (13, NbdError::Perm),
            (30, NbdError::Perm),
            (27, NbdError::Nospc),
            (122, NbdError::Nospc),
            (0, NbdError::Io),
            (-1, NbdError::Io),
            (110, NbdError::Io),
        ] {
            assert_eq!(NbdError::from_errno(errno), expected, "{errno}");
        }
    }
}
