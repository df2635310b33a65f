-- The public half of the pair that the owner of a key signs messages with (Ed25519, base64url).
ALTER TABLE api_keys ADD COLUMN public_key text;
