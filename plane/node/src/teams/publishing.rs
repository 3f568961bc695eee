//! Publication of teams to the switching plane, and notices of their members.

use suimon_contract::{ApiError, ErrorCode, HostConfig};

use crate::ports::topology;
use crate::shared::Shared;

impl Shared {
    /// Updates the teams to `config` and publishes the forwarding tables with them.
    ///
    /// # Errors
    /// A team or the plane rejects the configuration; both are unchanged.
    pub(crate) fn publish_tables(&self, config: &HostConfig) -> Result<(), ApiError> {
        let internal = |text: String| ApiError::new(ErrorCode::Internal, text);
        let away_nics = self.nics_on_other_nodes(config);
        let ids = self.ids();
        let mut table = self.teams.table();
        let mut next = table.clone();
        next.update(
            self.collect_required_teams(config, &ids),
            self.plane.now(),
            self.recording.as_ref(),
        )
        .map_err(|error| internal(format!("cannot configure a team: {error}")))?;
        let mut tables = topology(
            config,
            &ids,
            &|key| self.device_mtu(key),
            &next.distributions(),
            &self.bound_addresses.bindings_in_effect(config),
        );
        self.set_reached_by_uplink(&mut tables, config, &ids, &away_nics);
        self.plane.publish(tables).map_err(|error| {
            internal(format!("the switch rejected its forwarding tables: {error}"))
        })?;
        next.mark_published();
        *table = next;
        drop(table);
        self.teams.wake.wake();
        Ok(())
    }
}
