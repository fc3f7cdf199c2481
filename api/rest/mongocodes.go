package rest

import "tidemark/query/requests"

func formatCodes(codes []requests.ErrorCode) []MongoErrorCode {
	out := make([]MongoErrorCode, 0, len(codes))
	for _, c := range codes {
		out = append(out, MongoErrorCode{Code: c.Code, Name: mongoCodes[c.Code], Count: c.Count})
	}
	return out
}

// MongoCodeName is what MongoDB calls an error number; empty where that is not a common one.
func MongoCodeName(code string) string { return mongoCodes[code] }

// mongoCodes are the names of common error numbers (src/mongo/base/error_codes.yml of the server).
var mongoCodes = map[string]string{
	"1": "InternalError", "2": "BadValue", "8": "UnknownError", "9": "FailedToParse", "11": "UserNotFound", "13": "Unauthorized", "14": "TypeMismatch", "17": "ProtocolError",
	"18": "AuthenticationFailed", "20": "IllegalOperation", "24": "LockTimeout", "26": "NamespaceNotFound", "27": "IndexNotFound", "28": "PathNotViable", "40": "ConflictingUpdateOperators",
	"43": "CursorNotFound", "48": "NamespaceExists", "50": "MaxTimeMSExpired", "52": "DollarPrefixedFieldName", "59": "CommandNotFound", "61": "ShardKeyNotFound", "64": "WriteConcernTimeout",
	"66": "ImmutableField", "67": "CannotCreateIndex", "72": "InvalidOptions", "73": "InvalidNamespace", "79": "UnknownReplWriteConcern", "85": "IndexOptionsConflict", "86": "IndexKeySpecsConflict",
	"89": "NetworkTimeout", "91": "ShutdownInProgress", "96": "OperationFailed", "100": "UnsatisfiableWriteConcern", "112": "WriteConflict", "115": "CommandNotSupported", "121": "DocumentValidationFailure",
	"125": "CommandFailed", "133": "FailedToSatisfyReadPreference", "146": "ExceededMemoryLimit", "166": "CommandNotSupportedOnView", "175": "QueryPlanKilled", "189": "PrimarySteppedDown", "225": "TransactionTooOld",
	"238": "NotImplemented", "246": "SnapshotUnavailable", "251": "NoSuchTransaction", "256": "TransactionCommitted", "262": "ExceededTimeLimit", "263": "OperationNotSupportedInTransaction",
	"286": "ChangeStreamHistoryLost", "292": "QueryExceededMemoryLimitNoDiskUseAllowed", "10107": "NotWritablePrimary", "11000": "DuplicateKey", "11600": "InterruptedAtShutdown", "11601": "Interrupted",
	"11602": "InterruptedDueToReplStateChange", "13388": "StaleConfig", "13435": "NotPrimaryNoSecondaryOk", "13436": "NotPrimaryOrSecondary",
}
