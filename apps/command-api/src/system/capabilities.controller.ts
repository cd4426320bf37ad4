import { Controller, Get, Inject, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply } from 'fastify';
import {
  IDENTITY_FIELDS_MAX,
  OPERATION_STATUSES,
  REVIEW_DECISIONS,
  RUN_SPECIFIC_FIELDS,
  currentSecret,
  type ActionDefinition,
} from '#domain';
import { DEPENDENCIES, type CommandApiDependencies } from '../dependencies.js';
import { WAIT_SECONDS_MAX } from '../http/prefer.js';
import { BODY_LIMIT_BYTES } from '../http/server-options.js';
import { BATCH_ITEMS_MAX } from '../operations/plan.controller.js';

/** What a client can ask for here, and by which rules its requests are told apart. */
@Controller('v1/capabilities')
export class CapabilitiesController {
  private readonly capabilities: object;

  constructor(@Inject(DEPENDENCIES) { catalogue, identitySecrets, limits }: CommandApiDependencies) {
    this.capabilities = {
      actions: [...catalogue.actions.values()].map(describeAction),
      identity: {
        fields_max: IDENTITY_FIELDS_MAX,
        never_part_of_it: RUN_SPECIFIC_FIELDS,
        // The stream of an operation is never removed, so that a late repetition can't cause a second effect.
        retention: 'unlimited',
        key_version: currentSecret(identitySecrets).version,
      },
      payload_hash: {
        version: `hs256-${currentSecret(identitySecrets).version}`,
        rule: 'HMAC-SHA-256 over the RFC 8785 text of the payload without its presentational members.',
      },
      statuses: OPERATION_STATUSES,
      review_decisions: REVIEW_DECISIONS,
      limits: {
        body_bytes: BODY_LIMIT_BYTES,
        batch_items: BATCH_ITEMS_MAX,
        wait_seconds: WAIT_SECONDS_MAX,
        requests_per_second: limits.rateLimitPerSecond === 0 ? null : limits.rateLimitPerSecond,
      },
    };
  }

  @Get()
  @RouteConfig({ access: 'read' })
  read(@Res() reply: FastifyReply): void {
    reply.send(this.capabilities);
  }
}

function describeAction({ actionType, provider, risk, identity, payloadSchema, presentational, policy }: ActionDefinition): object {
  return {
    action_type: actionType,
    provider,
    risk,
    identity,
    payload_schema: payloadSchema,
    presentational,
    attempts_max: policy.max_attempts,
    on_unknown: policy.on_unknown,
    provider_key_retention_seconds: policy.same_key?.by === 'key' ? policy.same_key.retention_ms / 1000 : null,
  };
}
