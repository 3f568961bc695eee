import "@patternfly/react-core/dist/styles/base.css";
import "uplot/dist/uPlot.min.css";
import "./console.css";
import { createRoot } from "react-dom/client";
import { App } from "./shell/App";
import { applySettings } from "./shell/settings";

applySettings();
const root = document.getElementById("console");
if (root) createRoot(root).render(<App />);
