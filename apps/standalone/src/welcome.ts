import type { Standalone } from './standalone.js';

/** What a newcomer sees: where it is, the key, and a call that works as it stands. The last line is for programs. */
export function welcome({ url, labUrl, developmentKey, dataDir, catalogue }: Standalone): string {
  const ready = JSON.stringify({ ready: true, api: url, lab: labUrl });
  const demo = catalogue.actions.has('lab_a.payment_order.create') && developmentKey !== null;
  const example = demo ? `\n  Try it (send it twice: the second answer is the stored one):\n\n${curl(url, developmentKey)}\n` : '';
  const key = developmentKey === null ? '' : `  key       ${developmentKey}   (tenant dev, role admin; kept in ${dataDir}/dev-key)\n`;
  const lab = labUrl === null ? '' : `  lab       ${labUrl}   (the stand-in provider; its ledger: ${labUrl}/lab/ledger)\n`;
  return `
Onefold is running. Ctrl-C stops it.

  address   ${url}
${key}${lab}  data      ${dataDir}
${example}
${ready}
`;
}

function curl(url: string, key: string): string {
  const request = {
    action_type: 'lab_a.payment_order.create',
    identity: { workflow_id: 'case-1842', step: 'pay', business_object: 'application-731', revision: 1 },
    payload: { account_id: 'acc-1', amount_minor: 125_000, currency: 'RUB', business_reference: 'application-731' },
  };
  return `curl -i ${url}/v1/operations \\
  -H 'Authorization: Bearer ${key}' \\
  -H 'Content-Type: application/json' \\
  -H 'Prefer: wait=10' \\
  -d '${JSON.stringify(request)}'`;
}
