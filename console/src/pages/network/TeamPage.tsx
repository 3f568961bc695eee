/** Page of a team: traffic, members and LACP state of each link. */
import type { ReactNode } from "react";
import { Button } from "@patternfly/react-core";
import { useState } from "react";
import type { TeamStatus } from "../../api/types";
import { useTopic } from "../../live/hooks";
import { rateHistory, useRingBuffer } from "../../live/history";
import { Chart } from "../../components/Chart";
import { DataTable } from "../../components/DataTable";
import { PropertyList } from "../../components/PropertyList";
import { PageFrame } from "../../components/PageFrame";
import { Section } from "../../components/Section";
import { Empty, WhenLoaded } from "../../components/States";
import { StateLabel } from "../../components/StateLabel";
import { link } from "../../shell/router";
import { useTexts } from "../../texts/texts";
import { duration, bitRate, percent, speed } from "../../units/units";
import { inSync, stateLetters } from "./lacp";
import { Health } from "./PortTables";
import { TeamDialog } from "./TeamDialog";

type Member = TeamStatus["members"][number];

export function TeamPage(props: { name: string }) {
  const { t } = useTexts();
  const teams = useTopic("teams");
  const [isEditing, setIsEditing] = useState(false);
  const team = teams.data?.find((team) => team.config.name === props.name);
  return (
    <PageFrame
      title={t("team.title", { team: props.name })}
      about={<a href={link("network")}>{t("team.all")}</a>}
      actions={team && <Button variant="primary" onClick={() => setIsEditing(true)}>{t("action.change")}</Button>}
    >
      <WhenLoaded topics={[teams]}>
        {() => team ? (
          <>
            <Section title={t("team.traffic")}><Traffic team={team} /></Section>
            <Section title={t("team.members")}><Members team={team} /></Section>
            {team.config.mode === "lacp" && <Section title="LACP"><Lacp team={team} /></Section>}
            <Section title={t("team.properties")}><Properties team={team} /></Section>
          </>
        ) : <Empty title={t("team.notfound", { team: props.name })} />}
      </WhenLoaded>
      {isEditing && team && <TeamDialog team={team} onClose={() => setIsEditing(false)} />}
    </PageFrame>
  );
}

function Traffic(props: { team: TeamStatus }) {
  const { t } = useTexts();
  const history = useRingBuffer(rateHistory);
  const memberRates = (name: string, key: "rxBps" | "txBps") => history.map((rates) => rates.uplinks.find((uplink) => uplink.name === name)?.[key]);
  return (
    <Chart
      label={t("team.traffic")}
      timesMs={history.map((rates) => rates.timeMs)}
      format={bitRate}
      series={props.team.members.flatMap((member, index) => [
        { label: t("team.rx.of", { uplink: member.uplink }), values: memberRates(member.uplink, "rxBps"), color: index },
        { label: t("team.tx.of", { uplink: member.uplink }), values: memberRates(member.uplink, "txBps"), color: index, dashed: true },
      ])}
    />
  );
}

function Members(props: { team: TeamStatus }) {
  const { t, label } = useTexts();
  return (
    <DataTable
      label={t("team.members")}
      rows={props.team.members}
      id={(member) => member.uplink}
      columns={[
        { title: t("port.uplink"), cell: (member) => member.uplink },
        { title: t("column.state"), cell: (member) => <StateLabel state={member.state} /> },
        { title: t("team.role"), cell: (member) => [member.primary && label("primary"), member.standby && label("standby")].filter(Boolean).join(", ") || "–" },
        { title: t("team.link"), cell: (member) => label(member.link_up ? "up" : "down") },
        { title: t("team.speed"), cell: (member) => (member.speed_mbps == null ? "–" : speed(member.speed_mbps)), isNumber: true },
        { title: t("port.rx"), cell: (member) => <Rate bps={member.rx_bps} ppm={member.rx_share_ppm} />, isNumber: true },
        { title: t("port.tx"), cell: (member) => <Rate bps={member.tx_bps} ppm={member.tx_share_ppm} />, isNumber: true },
        { title: t("team.flows"), cell: (member) => percent(member.flows_share_ppm), isNumber: true },
        { title: t("team.nics"), cell: (member) => member.nics, isNumber: true },
        { title: t("column.reason"), cell: (member) => member.reason },
      ]}
    />
  );
}

function Rate(props: { bps: number; ppm: number }) {
  return <><span className="nowrap">{bitRate(props.bps)}</span> <span className="faint nowrap">{percent(props.ppm)}</span></>;
}

function Lacp(props: { team: TeamStatus }) {
  const { t } = useTexts();
  const partner = props.team.lacp_partner;
  const rows = props.team.members.filter((member) => member.lacp);
  const lacpCell = (render: (lacp: NonNullable<Member["lacp"]>) => ReactNode) => (member: Member) => member.lacp ? render(member.lacp) : "–";
  return (
    <>
      <p className="spaced">
        {partner
          ? t("lacp.partner", { system: partner.system, priority: partner.system_priority, key: partner.key })
          : t("lacp.partner.none")}
      </p>
      <DataTable
        label="LACP"
        rows={rows}
        id={(member) => member.uplink}
        columns={[
          { title: t("port.uplink"), cell: (member) => member.uplink },
          { title: t("lacp.partner.system"), cell: lacpCell(({ partner }) => <code>{partner.system}</code>) },
          { title: t("lacp.partner.port"), cell: lacpCell(({ partner }) => t("lacp.partner.port.value", { port: partner.port, key: partner.key })) },
          { title: t("lacp.actor.state"), cell: lacpCell(({ actor }) => <StateBits state={actor.state} />) },
          { title: t("lacp.partner.state"), cell: lacpCell(({ partner }) => <StateBits state={partner.state} />) },
          { title: t("lacp.sync"), cell: lacpCell(({ actor, partner }) => {
            const sync = inSync(actor.state, partner.state);
            return <StateLabel state={sync === "both" ? "up" : "down"} text={t(`lacp.sync.${sync}`)} />;
          }) },
          { title: t("lacp.machines"), cell: lacpCell((lacp) => `${lacp.receive}, ${lacp.mux}`) },
          { title: t("lacp.last_pdu"), cell: lacpCell((lacp) => lacp.last_pdu_age_ms == null ? t("lacp.never") : t("lacp.ago", { age: duration(lacp.last_pdu_age_ms / 1000) })) },
        ]}
      />
      <p className="faint spaced">{t("lacp.letters")}</p>
    </>
  );
}

function StateBits(props: { state: readonly string[] }) {
  return <code className="nowrap" title={props.state.join(", ")}>{stateLetters(props.state)}</code>;
}

function Properties(props: { team: TeamStatus }) {
  const { t } = useTexts();
  const { team } = props;
  return (
    <PropertyList
      columns={3}
      items={[
        [t("column.state"), <Health key="h" condition={team.condition} />],
        [t("team.mode"), team.config.mode],
        [t("team.algorithm"), team.config.algorithm ?? "dynamic"],
        [t("port.switch"), team.switch ?? "–"],
        [t("team.speed"), speed(team.speed_mbps)],
        ["MTU", team.mtu],
        [t("team.min_links"), team.config.min_links ?? 1],
        [t("label.primary"), team.config.primary ?? "–"],
        [t("label.standby"), team.config.standby ?? "–"],
      ]}
    />
  );
}
