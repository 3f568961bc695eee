// Generates src/api/schema.ts from the OpenAPI document. With --check only verifies that the file is current.
import { readFile, writeFile } from "node:fs/promises";
import openapi, { astToString } from "openapi-typescript";

const document = new URL("../../contract/openapi.json", import.meta.url);
const file = new URL("../src/api/schema.ts", import.meta.url);
const generated = `// Made from contract/openapi.json by \`npm run types\`.\n\n${astToString(await openapi(document, { defaultNonNullable: false }))}`;

if (process.argv.includes("--check")) {
  const present = await readFile(file, "utf8").catch(() => "");
  if (present !== generated) {
    console.error("src/api/schema.ts differs from contract/openapi.json; run `npm run types`");
    process.exit(1);
  }
} else {
  await writeFile(file, generated);
}
