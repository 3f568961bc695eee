//! External users of the store that the leader has detected.

use core::time::Duration;
use std::collections::BTreeMap;

use suimon_quantity::Time;

use crate::notice::ExternalUser;

/// Maximum number of users that are kept. Users beyond it are ignored while all of these use the
/// store: anyone who can create files in its directory can create any number of names.
const USERS_MAX: usize = 64;

/// Time since its last detection after which a user makes room for another one.
const UNUSED_AFTER: Duration = Duration::from_secs(60);

/// Users by name, each with the time of its last detection.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExternalUsers(BTreeMap<String, (ExternalUser, Time)>);

impl ExternalUsers {
    /// Records that a user was detected. Returns true if the user is new.
    pub(crate) fn insert(&mut self, now: Time, user: &ExternalUser) -> bool {
        if let Some(entry) = self.0.get_mut(&user.name) {
            *entry = (user.clone(), now);
            return false;
        }
        if self.0.len() >= USERS_MAX {
            self.0.retain(|_, (_, last_seen)| now.since(*last_seen) < UNUSED_AFTER);
        }
        let has_room = self.0.len() < USERS_MAX;
        if has_room {
            self.0.insert(user.name.clone(), (user.clone(), now));
        }
        has_room
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ExternalUser> {
        self.0.values().map(|(user, _)| user)
    }
}
