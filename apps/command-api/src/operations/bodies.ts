import {
  Allow,
  IsIn,
  IsObject,
  IsOptional,
  IsString,
  Length,
  Matches,
  Validate,
  ValidatorConstraint,
  type ValidatorConstraintInterface,
} from 'class-validator';
import { REVIEW_DECISIONS, type ReviewDecision, type Source } from '#domain';

export const SOURCE_MEMBERS_MAX = 16;
export const SOURCE_STRING_MAX = 200;
/** A few sentences; what is longer belongs where a link can point to. */
export const REASON_LENGTH_MAX = 1000;
export const NAME_LENGTH_MAX = 200;

@ValidatorConstraint({ name: 'source' })
class SourceConstraint implements ValidatorConstraintInterface {
  validate(value: unknown): boolean {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
    const members = Object.values(value);
    return members.length <= SOURCE_MEMBERS_MAX && members.every(isScalar);
  }

  defaultMessage(): string {
    return `A flat object of at most ${SOURCE_MEMBERS_MAX} strings (at most ${SOURCE_STRING_MAX} characters), numbers, booleans or nulls.`;
  }
}

function isScalar(value: unknown): boolean {
  if (typeof value === 'string') return isAtMost(value, SOURCE_STRING_MAX);
  return value === null || typeof value === 'number' || typeof value === 'boolean';
}

/** Characters are code points, as JSON Schema and `Length` count them: one outside the basic plane is two code units. */
function isAtMost(text: string, characters: number): boolean {
  return text.length <= characters || (text.length <= 2 * characters && [...text].length <= characters);
}

/** `POST /v1/operations`, and each element of a batch. What is in `identity` and `payload` is checked against the action. */
export class PlanBody {
  @IsString({ message: 'A string that names an action of the catalogue.' })
  action_type!: string;

  @Allow()
  identity?: unknown;

  @IsObject({ message: 'A JSON object as the schema of the action describes.' })
  payload!: Readonly<Record<string, unknown>>;

  @IsOptional()
  @Validate(SourceConstraint)
  source?: Source | null;
}

const REASON = { message: `A string of 1-${REASON_LENGTH_MAX} characters, not all of them spaces.` };

/** `POST /v1/operations/{id}/cancel` and `/reconcile`. */
export class ReasonBody {
  @IsOptional()
  @Length(1, REASON_LENGTH_MAX, REASON)
  @Matches(/\S/, REASON)
  reason?: string | null;
}

/** `POST /v1/operations/{id}/resolve`. */
export class ResolveBody {
  @IsIn(REVIEW_DECISIONS, { message: `One of: ${REVIEW_DECISIONS.join(', ')}.` })
  decision!: ReviewDecision;

  @Length(1, REASON_LENGTH_MAX, REASON)
  @Matches(/\S/, REASON)
  reason!: string;

  @IsOptional()
  @Length(1, NAME_LENGTH_MAX, { message: `The effect as the provider names it: a string of 1-${NAME_LENGTH_MAX} characters.` })
  provider_operation_id?: string | null;

  @IsOptional()
  @Length(1, REASON_LENGTH_MAX, REASON)
  evidence?: string | null;
}
